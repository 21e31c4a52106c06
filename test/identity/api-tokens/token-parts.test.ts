import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import {
  formatToken,
  kindOfToken,
  prefixOf,
  successorPair,
  type TokenKind,
} from '../../../src/access/api-token-format.ts';
import { permissionTable } from '../../../src/access/permissions.ts';
import { expand, expandPermission, expandScope } from '../../../src/access/scopes.ts';
import { canonicalPath, coversPattern, matchesPath, parseEndpointPattern } from '../../../src/kernel/endpoint-paths.ts';
import type { Permission } from '../../../src/kernel/resources.ts';

/** The last part of a token that begins so. */
function checksumOf(text: string): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const value = crc32(text);
  return [5, 4, 3, 2, 1, 0].map((place) => digits[Math.floor(value / 62 ** place) % 62]).join('');
}

describe('the text of a token', () => {
  it('is prefix, 8 characters, 43 of 256 random bits and a checksum', () => {
    const texts = Array.from({ length: 200 }, () => formatToken('pat'));
    for (const text of texts) {
      expect(text).toMatch(/^pat_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
      expect(kindOfToken(text)).toBe('pat');
    }
    expect(new Set(texts).size).toBe(200);
    expect(prefixOf(texts[0]!)).toBe(texts[0]!.slice(0, 12));
    expect(kindOfToken(formatToken('app'))).toBe('app');
    expect(kindOfToken(formatToken('rft'))).toBe('rft');
  });

  it('stays within its form for the least and the greatest bytes, and is the same for the same bytes', () => {
    expect(formatToken('pat', Buffer.alloc(37))).toBe(`pat_${'0'.repeat(8)}_${'0'.repeat(43)}_4GzMjf`);
    expect(kindOfToken(formatToken('rft', Buffer.alloc(37, 0xff)))).toBe('rft');
  });

  it('is refused where anything is written around it, even with a checksum of all', () => {
    expect(kindOfToken(formatToken('xpat' as TokenKind))).toBeNull();
    const text = formatToken('pat', Buffer.alloc(37));
    // what a program writes that takes the token for the first part of a longer one
    const longer = `${text}_${checksumOf(text)}`;
    expect(text).toBe(`${text.slice(0, -6)}${checksumOf(text.slice(0, -7))}`);
    expect(kindOfToken(longer)).toBeNull();
  });

  it('is refused when any one character is another', () => {
    const text = formatToken('pat');
    for (let i = 0; i < text.length; i++) {
      const other = text[i] === 'a' ? 'b' : 'a';
      expect(kindOfToken(`${text.slice(0, i)}${other}${text.slice(i + 1)}`)).toBeNull();
    }
    expect(kindOfToken(`${text}0`)).toBeNull();
    expect(kindOfToken(text.replace('pat', 'app'))).toBeNull();
  });

  it('of a successor follows from the refresh token and the secret alone', () => {
    const [secret, other] = [Buffer.from('one'), Buffer.from('two')];
    const refresh = formatToken('rft');
    const pair = successorPair('pat', refresh, secret);
    expect(successorPair('pat', refresh, secret)).toEqual(pair);
    expect([kindOfToken(pair.token), kindOfToken(pair.refreshToken)]).toEqual(['pat', 'rft']);
    expect(successorPair('pat', refresh, other).token).not.toBe(pair.token);
    expect(successorPair('pat', formatToken('rft'), secret).token).not.toBe(pair.token);
    expect(pair.token.slice(4, 56)).not.toBe(pair.refreshToken.slice(4, 56));
  });

  it('of a successor is the one that another version of the service made', () => {
    expect(successorPair('app', 'rft_x', Buffer.from('secret'))).toEqual({
      token: 'app_03uYSTYS_t9PJJndpygcRSljnOeSzdEQLVT39W8IQ6jK4uGt6aCU_40PY2L',
      refreshToken: 'rft_06paiSWZ_JfiMehTK5S22J0hJXcBvCiUNqoqpqyWZ5zGwrzNIlXA_0AZGLh',
    });
  });
});

describe('scopes and permissions', () => {
  const all = Object.keys(permissionTable);
  /**
   * Each resource with its actions: first those that whatever stands for them gives, then those that must be named. One
   * that is not listed must be plain.
   */
  const table: Record<string, [plain: string, sensitive: string]> = {
    organization: ['access update', 'delete'],
    organization_member: ['', 'read create update delete'],
    invitation: ['', 'read create update delete'],
    user: ['read', 'create update delete'],
    workspace_member: ['', 'read create update delete'],
    release: ['read create delete', ''],
    execution: ['read create', ''],
    artifact: ['read create update delete promote', ''],
    secret: ['read create update rotate delete', 'reveal destroy'],
    application: ['', 'read create update delete'],
    application_grant: ['', 'read revoke'],
    scim_token: ['', 'read create delete'],
    identity_provider: ['', 'read create update delete'],
    api_token: ['', 'read create revoke manage'],
    app_token: ['', 'read create revoke'],
    deployment: ['create delete', ''],
    model: ['read create update delete execute', ''],
    tool: ['read create update delete', ''],
    tool_instance: ['read create update delete execute', ''],
    connection: ['read create delete', 'use'],
    webhook: ['', 'read create update delete'],
    audit_stream: ['', 'read create update delete'],
    sync: ['subscribe', ''],
    presence: ['update', ''],
    notification: ['read update', ''],
    activity: ['read', ''],
    analytics: ['read', ''],
    recipe: ['read apply export', ''],
  };
  const plain = ['read create update delete', ''] as const;
  const resources = [...new Set(all.map((permission) => permission.split(':')[0]!))];
  const tabled: Record<string, readonly [string, string]> = {
    ...Object.fromEntries(resources.map((resource) => [resource, plain])),
    ...table,
  };
  const named = (column: 0 | 1) =>
    Object.entries(tabled).flatMap(([resource, actions]) =>
      actions[column].split(' ').flatMap((action) => (action ? `${resource}:${action}` : [])),
    );
  const sensitive = named(1);

  it('every permission is in this table: whoever adds one decides whether a token must name it', () => {
    expect([...named(0), ...sensitive].sort()).toEqual([...all].sort());
  });

  it('what is sensitive is had by its own name, its resource and `admin`; by no wide name but one of reads', () => {
    for (const name of sensitive as Permission[]) {
      const [resource, verb] = name.split(':') as [string, string];
      const isRead = verb === 'read';
      expect([name, expandPermission(name), expandScope(resource).includes(name)]).toEqual([name, [name], true]);
      expect([name, expandPermission(`${resource}:*`).includes(name)]).toEqual([name, true]);
      expect([name, expand([], []).has(name)]).toEqual([name, false]);
      expect([name, expandPermission(`*:${verb}`).includes(name)]).toEqual([name, isRead]);
      expect([name, expandScope('write').includes(name)]).toEqual([name, isRead]);
    }
  });

  it('nothing named stands for all but what is sensitive', () => {
    expect([...expand([], [])].sort()).toEqual(all.filter((name) => !sensitive.includes(name)).sort());
  });

  it('`read` is every `*:read` and nothing else', () => {
    expect(expandScope('read')).toEqual(all.filter((name) => name.endsWith(':read')));
    expect(expandScope('*:read')).toEqual(expandScope('read'));
  });

  it('`write` is `read` and everything that creates or updates, but people and tokens', () => {
    const reads = all.filter((name) => name.endsWith(':read'));
    const written = named(0).filter((name) => /:(create|update)$/.test(name));
    const people = `user:create user:update workspace_member:create workspace_member:update organization_member:create
      organization_member:update invitation:create invitation:update api_token:create app_token:create
      identity_provider:create identity_provider:update application:create application:update scim_token:create
      webhook:create webhook:update audit_stream:create audit_stream:update`;
    expect([...expandScope('write')].sort()).toEqual([...reads, ...written].sort());
    expect([...written, ...people.split(/\s+/)].sort()).toEqual(
      all.filter((name) => /:(create|update)$/.test(name)).sort(),
    );
  });

  it('`admin` is everything but the making of tokens, which must be named', () => {
    const left = new Set<string>(expandScope('admin'));
    expect(all.filter((name) => !left.has(name))).toEqual(
      ['api_token:create', 'app_token:create', 'application:create', 'application:update', 'scim_token:create'].sort(
        (a, b) => all.indexOf(a as Permission) - all.indexOf(b as Permission),
      ),
    );
  });

  it('a resource, and `resource:*`, are all its actions', () => {
    const secret = all.filter((name) => name.startsWith('secret:'));
    expect([expandScope('secret'), expandScope('secret:*'), expandPermission('secret:*')]).toEqual([
      secret,
      secret,
      secret,
    ]);
  });

  it('`*:verb` names no resource, so it leaves out what is sensitive', () => {
    expect(expandPermission('*:create')).not.toContain('api_token:create');
    expect(expandPermission('*:create')).toContain('workspace:create');
    expect(expandPermission('*:reveal')).toEqual([]);
  });

  it.each([
    '',
    ':',
    '*',
    '*:*',
    'secret:',
    ':read',
    'secret:read:all',
    'READ',
    'secrets',
    '__proto__',
    'constructor',
    'toString',
    'nothing:read',
    'nothing:*',
    'nothing:create',
  ])('%j means nothing', (name) => {
    expect([expandScope(name), expandPermission(name)]).toEqual([[], []]);
  });

  it('a name that means nothing grants nothing: it is not the same as no name', () => {
    expect(expand(['was_once_a_resource'], []).size).toBe(0);
    expect(expand([], ['was_once:read']).size).toBe(0);
  });
});

describe('endpoint paths', () => {
  const pattern = (text: string) => {
    const parsed = parseEndpointPattern(text);
    if (!parsed) throw new Error(`${text} is no pattern`);
    return parsed;
  };

  it.each([
    ['/v1/orgs', '/v1/orgs', true],
    ['/v1/orgs', '/v1/orgs/org_1/secrets', true],
    ['/v1/orgs', '/v1/orgsX', false],
    ['/v1/orgs/', '/v1/orgs', true],
    ['/v1/orgs/*', '/v1/orgs/org_1', true],
    ['/v1/orgs/*', '/v1/orgs/org_1/secrets', false],
    ['/v1/orgs/*', '/v1/orgs', false],
    ['/v1/orgs/*/secrets/**', '/v1/orgs/org_1/secrets', true],
    ['/v1/orgs/*/**', '/v1/orgs/org_1', true],
    ['/v1/orgs/*/**', '/v1/orgs', false],
    ['/v1/orgs/*/secrets/**', '/v1/orgs/org_1/secrets/a/b', true],
    ['/v1/orgs/*/secrets/**', '/v1/orgs/org_1/entities/secrets', false],
    ['/v1/by-name/a%20b', '/v1/by-name/a%20b', true],
    ['/v1/by-name/a b', '/v1/by-name/a%20b', true],
    ['/v1/by-name/%61', '/v1/by-name/a', true],
    ['/v1/ORGS', '/v1/orgs', false],
    ['/**', '/graphql', true],
    ['/', '/graphql', true],
    ['/v1', '/graphql', false],
  ])('%s lets %s through: %s', (text, path, passes) => {
    expect(matchesPath(pattern(text), path)).toBe(passes);
  });

  it.each(['v1', '//v1', '/v1//orgs', '/v1/./x', '/v1/../x', '/v1/**/x', '/v1/or*', '/v1/%zz', ''])(
    '%j is none',
    (text) => {
      expect(parseEndpointPattern(text)).toBeNull();
    },
  );

  it.each([
    ['/v1/orgs', '/v1/orgs/org_1', true],
    // without a star a pattern is a prefix: it is open behind its end
    ['/v1/orgs/*', '/v1/orgs/org_1', false],
    ['/v1/orgs/**', '/v1/orgs/*', true],
    ['/v1/orgs/*/x', '/v1/orgs/*/x', true],
    ['/v1/orgs/*', '/v1/orgs/*', true],
    ['/v1/orgs/org_1', '/v1/orgs/*/x', false],
    ['/v1/orgs/*/x/**', '/v1/orgs/org_1/x/y', true],
    ['/v1', '/graphql', false],
    ['/v1', '/v1', true],
    ['/v1/orgs/*/**', '/v1/orgs', false],
    ['/v1/orgs/*', '/v1/orgs/*/x', false],
    ['/v1/orgs/*', '/v1/users/*', false],
  ])('%s covers %s: %s', (outer, inner, covers) => {
    expect(coversPattern(pattern(outer), pattern(inner))).toBe(covers);
  });

  it('canonical ones are made of the template, with each value encoded anew', () => {
    expect(canonicalPath('/v1/orgs/{org_id}/by-name/{name}', { org_id: 'o', name: 'a/../b c' })).toBe(
      '/v1/orgs/o/by-name/a%2F..%2Fb%20c',
    );
    expect(canonicalPath('/v1/{a}', { a: '\ud800' })).toBe('/v1/%EF%BF%BD');
    expect(canonicalPath('/v1/{a}/x', {})).toBe('/v1//x');
    expect(canonicalPath('/v1/orgs', { a: 'b' })).toBe('/v1/orgs');
  });
});
