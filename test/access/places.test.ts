import { describe, expect, it } from 'vitest';
import { KnownFacts } from '../../src/access/known-facts.ts';
import { TokenUses } from '../../src/access/token-uses.ts';
import type { Sql } from '../../src/data/sql.ts';
import { markChecked } from '../../src/kernel/mark-checked.ts';
import { type Principal, principalId, sessionOf } from '../../src/kernel/principal.ts';
import { RootPlace } from '../../src/kernel/root-place.ts';
import { systemCaller, TASK_METHOD } from '../../src/kernel/system-caller.ts';
import type { TokenGrant } from '../../src/kernel/token-grant.ts';
import { waitFor } from '../support/wait.ts';

const asked = { permission: 'secret:read', grant: 'own', role: 'member' } as const;

describe('the place of a root field', () => {
  const parts = { orgId: 'o', workspaceId: 'w', namespaceId: 'n', appId: 'a', environmentId: 'e' };
  const place = new RootPlace(parts, asked);

  it('has the parts that a resolver asks for, and no others', () => {
    expect({ ...place.organization }).toEqual({ orgId: 'o' });
    expect({ ...place.workspace }).toEqual({ orgId: 'o', workspaceId: 'w' });
    expect({ ...place.namespace }).toEqual({ orgId: 'o', workspaceId: 'w', namespaceId: 'n' });
    expect({ ...place.app }).toEqual({ orgId: 'o', workspaceId: 'w', appId: 'a' });
    expect({ ...place.appNamespace }).toEqual({ orgId: 'o', workspaceId: 'w', appId: 'a', namespaceId: 'n' });
    expect({ ...place.environment }).toEqual({ orgId: 'o', workspaceId: 'w', environmentId: 'e' });
  });

  it('tells what was asked for', () => {
    for (const name of ['organization', 'workspace', 'namespace', 'app', 'appNamespace', 'environment'] as const)
      expect(place[name].asked).toEqual(asked);
  });

  it('fails for a part that the field does not declare', () => {
    const organization = new RootPlace({ orgId: 'o' }, asked);
    expect({ ...organization.organization }).toEqual({ orgId: 'o' });
    for (const name of ['workspace', 'namespace', 'app', 'appNamespace', 'environment'] as const)
      expect(() => organization[name]).toThrow('The field asks for nothing in a place');
  });
});

describe('a checked place', () => {
  it('without a check of its own tells of none', () => {
    const place = markChecked({ orgId: 'o' });
    expect(place.orgId).toBe('o');
    expect(() => place.asked).toThrow('Nothing was asked for in this place.');
    expect(markChecked({}, asked).asked).toBe(asked);
  });

  it('is not copied with its properties', () => {
    expect({ ...markChecked({ orgId: 'o' }, asked) }).toEqual({ orgId: 'o' });
  });
});

describe('a caller', () => {
  const known = { userId: 'usr_1', username: 'u', isPlatformAdmin: false, isVerified: true };
  const user: Principal = { ...known, type: 'user', sessionId: 'ses_1', orgId: null, token: null };
  const token: Principal = { ...known, type: 'api_token', orgId: 'org_1', token: { id: 'tok_1' } as TokenGrant };

  it('is known by its token, or as its user', () => {
    expect([principalId(user), principalId(token)]).toEqual(['usr_1', 'tok_1']);
  });

  it('with a token has no session', () => {
    expect(sessionOf({ principal: user }, 'api_token:create')).toBe(user);
    expect(() => sessionOf({ principal: token }, 'api_token:create')).toThrow(
      expect.objectContaining({
        code: 'FORBIDDEN',
        message: 'An API token cannot do this: sign in instead.',
        details: { required_permission: 'api_token:create' },
      }),
    );
  });

  it('may be the service itself, with a trace of its own', () => {
    const { principal, request } = systemCaller('index');
    expect(principal).toBeNull();
    expect(request).toMatchObject({
      method: TASK_METHOD,
      path: 'index',
      ip: '',
      successStatus: 200,
      recorded: false,
      isRest: false,
    });
    expect(request.traceId).toMatch(/^[0-9a-f-]{36}$/);
    expect(systemCaller('index').request.traceId).not.toBe(request.traceId);
    expect(TASK_METHOD).toBe('TASK');
  });
});

describe('known facts', () => {
  const written = (facts: KnownFacts) => facts.parameters.map((one) => (one as { toPostgres(): string }).toPostgres());

  it('are asked about by place and user', () => {
    const facts = new KnownFacts([
      { userId: 'u1', orgId: 'o1', workspaceId: 'w1', facts: 'a b c' },
      { userId: 'u2', orgId: 'o2', workspaceId: null, facts: null },
      { userId: 'u3', orgId: 'o3', workspaceId: 'w3', facts: null },
    ]);
    expect(facts.organizationKeys).toEqual(['o1 u1', 'o2 u2', 'o3 u3']);
    expect(facts.inWorkspaces).toEqual([0, 2]);
    expect(facts.workspaceKeys).toEqual(['o1 w1 u1', 'o3 w3 u3']);
    expect(facts.facts).toEqual(['a b c', null, null]);
    expect(written(facts)).toEqual(['{"o1","o2","o3"}', '{"w1",null,"w3"}', '{"u1","u2","u3"}', '{"a b c",null,null}']);
    facts.learn(1, 'x');
    expect(facts.facts).toEqual(['a b c', 'x', null]);
    expect(written(facts)[3]).toBe('{"a b c","x",null}');
  });
});

describe('the use of tokens', () => {
  const usesWith = (write: (ids: string[]) => Promise<number>) => {
    const faults: unknown[] = [];
    const sql = { write: (_text: string, [ids]: [string[]]) => write(ids) } as unknown as Sql;
    return { uses: new TokenUses(sql, (error, what) => faults.push([error, what])), faults };
  };

  it('is written together, each token once a minute', async () => {
    const written: string[][] = [];
    const { uses } = usesWith(async (ids) => written.push(ids));
    for (const id of ['a', 'b', 'a']) uses.note(id);
    await uses.flush();
    uses.note('a');
    uses.note('c');
    await uses.flush();
    await uses.flush();
    expect(written).toEqual([['a', 'b'], ['c']]);
  });

  it('is written within a second, without being asked to', async () => {
    const written: string[][] = [];
    const { uses } = usesWith(async (ids) => written.push(ids));
    uses.note('a');
    await waitFor(() => expect(written).toEqual([['a']]));
    uses.note('b');
    await waitFor(() => expect(written).toEqual([['a'], ['b']]));
  });

  it('that could not be written is reported, and written with the next use', async () => {
    const written: string[][] = [];
    const fault = new Error('lost');
    const { uses, faults } = usesWith(async (ids) => {
      if (faults.length === 0) throw fault;
      return written.push(ids);
    });
    uses.note('a');
    await uses.flush();
    expect(faults).toEqual([[fault, 'the times of last use of tokens could not be written']]);
    uses.note('a');
    await uses.flush();
    expect(written).toEqual([['a']]);
  });
});
