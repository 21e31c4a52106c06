import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';
import { databaseChecksums } from '../../support/rows.ts';
import {
  accountOf,
  type Company,
  clientOf,
  company,
  entraUser,
  newToken,
  patch,
  provision,
  rolesOf,
  unique,
} from './directories.ts';

let app: TestApp;
let firm: Company;
let other: Company;
let ids: { user: string; group: string; otherUser: string; otherGroup: string };
beforeAll(async () => {
  app = await startTestApp();
  await register(app, { name: 'operator' }); // the first account administers the platform
  firm = await company(app);
  other = await company(app);
  ids = {
    user: (await provision(firm)).id,
    group: (await firm.scim('POST', '/Groups', { displayName: 'Here' })).body.id,
    otherUser: (await provision(other)).id,
    otherGroup: (await other.scim('POST', '/Groups', { displayName: 'There' })).body.id,
  };
});
afterAll(() => app.close());

const db = () => app.database.prisma;
const TABLES = [
  'users',
  'organization_members',
  'workspace_members',
  'scim_users',
  'scim_groups',
  'scim_group_members',
];

/** What no refused request changes. */
const checksums = async () => {
  const all = await databaseChecksums(app.database.pool);
  return Object.fromEntries(TABLES.map((table) => [table, all[table]]));
};

const ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error';

describe('credentials', () => {
  const refused = async (base: string, token: string, headers: Record<string, string> = {}) => {
    const answer = await clientOf(app, base, token)('GET', '/Users', undefined, headers);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="scim"');
    return [answer.status, answer.body];
  };
  const body = {
    schemas: [ERROR],
    status: '401',
    detail: 'The token is missing, unknown, expired, or of another organization.',
  };

  test('one answer to every token that is none of the organization', async () => {
    const { token, tokenId } = await newToken(firm.owner);
    expect((await clientOf(app, firm.base, token)('GET', '/Users')).status).toBe(200);
    const fine = `Bearer ${token}`;
    for (const answer of [
      await refused(other.base, token),
      await refused(firm.base, other.token),
      await refused(firm.base, ''),
      await refused(firm.base, `${token}x`),
      await refused(firm.base, token.slice(0, -1)),
      await refused(firm.base, token.toUpperCase()),
      await refused(firm.base, firm.owner.accessToken),
      await refused(firm.base, 'x'.repeat(10_000)),
      await refused(firm.base, "' or true --"),
      await refused('/scim/v2/org_nobody', token),
      await refused('/scim/v2/%00', token),
      await refused(`/scim/v2/${firm.owner.orgId.toUpperCase()}`, token),
      await refused(firm.base, token, { authorization: `Basic ${token}` }),
      await refused(firm.base, token, { authorization: `${fine}, ${fine}` }),
    ])
      expect(answer).toEqual([401, body]);
    await db().scimToken.update({ where: { id: tokenId }, data: { expiresAt: new Date(Date.now() - 1_000) } });
    expect(await refused(firm.base, token)).toEqual([401, body]);
  });

  test('a token ends at once when it is revoked, and with its maker, their role and the organization', async () => {
    const firm = await company(app);
    const { owner } = firm;
    const revoked = await newToken(owner);
    const one = `/v1/orgs/${owner.orgId}/scim-tokens/${revoked.tokenId}`;
    const asks = async (token: string) => (await clientOf(app, firm.base, token)('GET', '/Users')).status;
    expect(await asks(revoked.token)).toBe(200);
    expect((await owner.call('DELETE', one)).status).toBe(204);
    expect(await asks(revoked.token)).toBe(401);
    const admin = await register(app, { name: 'admin' });
    const members = `/v1/orgs/${owner.orgId}/members`;
    await owner.call('POST', members, { user_id: admin.userId, role: 'admin' });
    const { token } = await newToken(admin, owner.orgId);
    await owner.call('PATCH', `${members}/${admin.userId}`, { role: 'editor' });
    expect(await asks(token)).toBe(401);
    await owner.call('PATCH', `${members}/${admin.userId}`, { role: 'admin' });
    expect(await asks(token)).toBe(200);
    await owner.call('DELETE', `${members}/${admin.userId}`);
    await owner.call('POST', members, { user_id: admin.userId, role: 'admin' });
    expect(await asks(token)).toBe(401);
    expect(await asks(firm.token)).toBe(200);
    expect((await owner.call('DELETE', `/v1/orgs/${owner.orgId}`)).status).toBeLessThan(300);
    expect(await asks(firm.token)).toBe(401);
  });

  test('a token of a directory opens nothing else, and no other token makes one unless it names that', async () => {
    for (const url of [
      '/v1/auth/me',
      `/v1/orgs/${firm.owner.orgId}/members`,
      `/v1/orgs/${firm.owner.orgId}/scim-tokens`,
    ]) {
      const headers = { authorization: `Bearer ${firm.token}` };
      expect((await app.server.inject({ method: 'GET', url, headers })).statusCode).toBe(401);
    }
    const issued = await firm.owner.call<{ plaintext_token: string }>(
      'POST',
      `/v1/orgs/${firm.owner.orgId}/api-tokens`,
      {
        name: 'admin',
        scopes: ['admin'],
      },
    );
    const answer = await app.server.inject({
      method: 'POST',
      url: `/v1/orgs/${firm.owner.orgId}/scim-tokens`,
      headers: { authorization: `Bearer ${issued.body.plaintext_token}` },
      payload: { name: 'mine' },
    });
    expect([answer.statusCode, answer.json()]).toMatchObject([
      403,
      { details: { required_permission: 'scim_token:create' } },
    ]);
  });

  test('a token is kept as a hash, shown once, and knows when it was used', async () => {
    const { token, tokenId } = await newToken(firm.owner);
    const row = await db().scimToken.findUniqueOrThrow({ where: { id: tokenId } });
    expect(JSON.stringify(row)).not.toContain(token);
    expect(row.lastUsedAt).toBeNull();
    await clientOf(app, firm.base, token)('GET', '/Users');
    const list = await firm.owner.call<{ scim_tokens: { scim_token_id: string; last_used_at: string | null }[] }>(
      'GET',
      `/v1/orgs/${firm.owner.orgId}/scim-tokens`,
    );
    expect(JSON.stringify(list.body)).not.toContain(token);
    expect(list.body.scim_tokens.find(({ scim_token_id: id }) => id === tokenId)?.last_used_at).toEqual(
      expect.any(String),
    );
  });

  test('a token that asks too often is refused in the form of SCIM, and no other token suffers', async () => {
    const { token, tokenId } = await newToken(firm.owner);
    const { scimTokens } = app.services;
    const take = scimTokens.take.bind(scimTokens);
    const empty = { allowed: false, limit: 250, remaining: 0, resetSeconds: 10, retryAfter: 3 };
    scimTokens.take = (living) => (living.id === tokenId ? empty : take(living));
    try {
      const answer = await clientOf(app, firm.base, token)('GET', '/ServiceProviderConfig');
      expect([answer.status, answer.body.schemas, answer.headers['retry-after']]).toEqual([429, [ERROR], '3']);
      expect((await firm.scim('GET', '/ServiceProviderConfig')).status).toBe(200);
    } finally {
      scimTokens.take = take;
    }
    const living = { id: 'sct_full', orgId: 'org_x', makerId: 'usr_x', authority: 'owner' } as const;
    expect(await scimTokens.take(living)).toMatchObject({ allowed: true, limit: 250 });
  });
});

const many = (length: number, of: (at: number) => unknown = String) => Array.from({ length }, (_, at) => of(at));
const nested = (depth: number) => `${'('.repeat(depth)}id pr${')'.repeat(depth)}`;
const filter = (text: string) => `?filter=${encodeURIComponent(text)}`;

describe('filters', () => {
  test.each([
    ['is nested too deeply', nested(11)],
    ['is nested a thousand times', nested(900)],
    ['is endless', `userName eq "${'a'.repeat(3_000)}"`],
    ['has too many comparisons', many(40, () => 'id pr').join(' and ')],
    ['has a hundred nots', `${'not ('.repeat(100)}id pr${')'.repeat(100)}`],
    ['has no value', 'userName eq'],
    ['has no operator', 'userName'],
    ['has an unknown operator', 'userName like "a"'],
    ['has an unknown attribute', 'password eq "a"'],
    ['has an attribute of a prototype', '__proto__ eq "a"'],
    ['has another one', 'constructor eq "a"'],
    ['has no end of a text', 'userName eq "a'],
    ['has SQL', `userName eq "a" or 1=1 --`],
    ['has SQL for an attribute', `user_name eq "a"); drop table users; --`],
    ['has a bare word', 'userName eq ann'],
    ['has a number for a text', 'userName eq 1'],
    ['orders a flag', 'active gt true'],
    ['has a text for a flag', 'active eq "maybe"'],
    ['has no time', 'meta.created gt "yesterday"'],
    ['has a NUL', 'userName eq "a\\u0000b"'],
    ['has half a character', 'userName eq "\\ud800"'],
    ['has an escape of no JSON', 'userName eq "\\x"'],
    ['lacks a bracket', 'emails[type eq "work"'],
    ['has brackets in brackets', 'emails[value[type eq "a"] eq "b"]'],
    ['has brackets that do not match', '(id pr]'],
    ['joins nothing', 'id pr and'],
    ['is only not', 'not id pr'],
    ['is empty brackets', '()'],
    ['goes on', 'id pr id pr'],
  ])('a filter that %s is refused', async (_, text) => {
    const { status, body } = await firm.scim('GET', `/Users${filter(text)}`);
    expect([status, body]).toEqual([
      400,
      { schemas: [ERROR], status: '400', scimType: 'invalidFilter', detail: expect.any(String) },
    ]);
  });

  test('says what it says: brackets, not, and, or, any case of words, and characters that SQL would read', async () => {
    const firm = await company(app);
    const name = (userName: string, more: object = {}) =>
      firm.scim('POST', '/Users', { userName, active: false, ...more }).then(({ status }) => expect(status).toBe(201));
    await name('Ann%', { displayName: 'Ann', emails: [{ value: 'ann@x.test' }], externalId: 'A' });
    await name('bea_1', { displayName: 'Bea', name: { familyName: 'Bär' } });
    await name('ÇİLEK', { externalId: 'a' });
    const found = async (text: string) => {
      const { status, body } = await firm.scim('GET', `/Users${filter(text)}&sortBy=userName`);
      expect(status, JSON.stringify(body)).toBe(200);
      return body.Resources.map(({ userName }: { userName: string }) => userName);
    };
    const cases: [string, string[]][] = [
      ['userName eq "ANN%"', ['Ann%']],
      ['USERNAME EQ "bea_1"', ['bea_1']],
      ['userName eq "çi̇lek"', ['ÇİLEK']],
      ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "ann"', ['Ann%']],
      ['userName co "%"', ['Ann%']],
      ['userName co "_"', ['bea_1']],
      ['userName ew "1"', ['bea_1']],
      ['externalId eq "a"', ['ÇİLEK']],
      ['name.familyName eq "BÄR"', ['bea_1']],
      ['emails[type eq "work" and value co "@x."]', ['Ann%']],
      ['emails.value eq "ann@x.test"', ['Ann%']],
      ['emails pr', ['Ann%']],
      ['not (emails pr)', ['bea_1', 'ÇİLEK']],
      ['displayName eq null', ['ÇİLEK']],
      ['not (userName sw "a" or userName sw "b")', ['ÇİLEK']],
      ['userName sw "a" or userName sw "b" and displayName eq "x"', ['Ann%']],
      ['(userName sw "a" or userName sw "b") and displayName eq "Bea"', ['bea_1']],
      ['active eq true', []],
      ['active eq "False" and externalId pr', ['Ann%', 'ÇİLEK']],
      ['meta.lastModified gt "2020-01-01T00:00:00Z" and meta.created lt "2021-01-01T00:00:00Z"', []],
      [`userName eq "x\\" or true"`, []],
    ];
    for (const [text, names] of cases) expect([text, await found(text)]).toEqual([text, names]);
  });
});

test('no filter and no order takes a name of a prepared statement: there are endless ones', async () => {
  const { sql } = app.services;
  const read = sql.read.bind(sql);
  const named: string[] = [];
  sql.read = ((text: string, values: unknown[]) => {
    named.push(text);
    return read(text, values);
  }) as typeof sql.read;
  try {
    for (const path of [
      `/Users${filter('not (displayName pr) and not (externalId ew "x")')}`,
      '/Users?sortBy=name.familyName&sortOrder=descending',
      `/Groups${filter('displayName co "Her"')}`,
      '/Groups?sortBy=meta.created',
    ])
      expect((await firm.scim('GET', path)).status).toBe(200);
  } finally {
    sql.read = read;
  }
  expect(named.filter((text) => /from scim_(?:users|groups) s/.test(text))).toEqual([]);
});

describe('what is no request', () => {
  const one = () => `/Users/${ids.user}`;
  const group = () => `/Groups/${ids.group}`;
  const add = (value: unknown) => patch({ op: 'add', path: 'members', value });
  const rows = (): [string, 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', () => string, unknown, number, string?][] => [
    ['an id of another organization', 'GET', () => `/Users/${ids.otherUser}`, undefined, 404],
    [
      'a change of it',
      'PATCH',
      () => `/Users/${ids.otherUser}`,
      patch({ op: 'replace', path: 'active', value: false }),
      404,
    ],
    ['a replacement of it', 'PUT', () => `/Users/${ids.otherUser}`, entraUser('a@b.test'), 404],
    ['a deletion of it', 'DELETE', () => `/Users/${ids.otherUser}`, undefined, 404],
    ['a group of another organization', 'DELETE', () => `/Groups/${ids.otherGroup}`, undefined, 404],
    ['a change of that', 'PATCH', () => `/Groups/${ids.otherGroup}`, add([]), 404],
    ['the id of an account', 'GET', () => `/Users/${firm.owner.userId}`, undefined, 404],
    ['an id that is none', 'GET', () => `/Users/${'x'.repeat(90)}%27`, undefined, 404],
    ['an id that has a NUL', 'GET', () => '/Users/%00', undefined, 404],
    ['a change of that', 'PATCH', () => '/Users/a%00', patch({ op: 'replace', path: 'active', value: false }), 404],
    ['a group whose id has a NUL', 'DELETE', () => '/Groups/%00', undefined, 404],
    ['a path that is none', 'GET', () => '/Everything', undefined, 404],
    ['a path below', 'GET', () => `${one()}/roles`, undefined, 404],
    ['bulk', 'POST', () => '/Bulk', {}, 501],
    ['me', 'GET', () => '/Me', undefined, 501],
    ['no JSON', 'POST', () => '/Users', '{', 400, 'invalidSyntax'],
    ['no body', 'POST', () => '/Users', undefined, 400, 'invalidSyntax'],
    ['a list', 'POST', () => '/Users', [], 400, 'invalidSyntax'],
    ['a text', 'POST', () => '/Users', '"x"', 400, 'invalidSyntax'],
    ['no userName', 'POST', () => '/Users', { emails: [] }, 400, 'invalidValue'],
    ['a blank userName', 'POST', () => '/Users', { userName: '  ' }, 400, 'mutability'],
    ['a userName of another type', 'POST', () => '/Users', { userName: { $gt: '' } }, 400, 'invalidValue'],
    ['an endless userName', 'POST', () => '/Users', { userName: 'a'.repeat(400) }, 400, 'invalidValue'],
    ['a NUL', 'POST', () => '/Users', { userName: 'a\0' }, 400, 'invalidValue'],
    ['no address', 'POST', () => '/Users', { userName: 'ann' }, 400, 'invalidValue'],
    [
      'an address that is none',
      'POST',
      () => '/Users',
      { userName: 'a', emails: [{ value: 'a@@b' }] },
      400,
      'invalidValue',
    ],
    [
      'a thousand addresses',
      'POST',
      () => '/Users',
      { userName: 'a', emails: many(1_000, () => ({ value: 'a@b.test' })) },
      400,
      'tooMany',
    ],
    [
      'active that is neither',
      'PATCH',
      one,
      patch({ op: 'replace', path: 'active', value: 'perhaps' }),
      400,
      'invalidValue',
    ],
    ['active as a list', 'PATCH', one, patch({ op: 'replace', path: 'active', value: [false] }), 400, 'invalidValue'],
    ['another id', 'PATCH', one, patch({ op: 'replace', value: { id: 'scu_other' } }), 400, 'mutability'],
    ['a path to id', 'PATCH', one, patch({ op: 'replace', path: 'id', value: 'x' }), 400, 'mutability'],
    ['a path to meta', 'PATCH', one, patch({ op: 'replace', path: 'meta.version', value: 'W/"9"' }), 400, 'mutability'],
    [
      'a path to groups',
      'PATCH',
      one,
      patch({ op: 'add', path: 'groups', value: [{ value: 'x' }] }),
      400,
      'mutability',
    ],
    ['another id in a whole', 'PUT', one, { ...entraUser('a@b.test'), id: 'scu_other' }, 400, 'mutability'],
    ['the removal of userName', 'PATCH', one, patch({ op: 'remove', path: 'userName' }), 400, 'mutability'],
    ['an unknown path', 'PATCH', one, patch({ op: 'replace', path: 'role', value: 'owner' }), 400, 'invalidPath'],
    ['a path of the service', 'PATCH', one, patch({ op: 'replace', path: 'userId', value: 'x' }), 400, 'invalidPath'],
    ['a path of a prototype', 'PATCH', one, patch({ op: 'add', path: '__proto__.x', value: 1 }), 400, 'invalidPath'],
    [
      'a path that cannot be read',
      'PATCH',
      one,
      patch({ op: 'add', path: 'emails[type eq "work"', value: 1 }),
      400,
      'invalidPath',
    ],
    [
      'a bomb for a path',
      'PATCH',
      one,
      patch({ op: 'add', path: `emails[${nested(500)}].value`, value: 'a' }),
      400,
      'invalidFilter',
    ],
    ['an unknown op', 'PATCH', one, patch({ op: 'move', path: 'active', value: true }), 400, 'invalidSyntax'],
    ['no operations', 'PATCH', one, { schemas: [] }, 400, 'invalidSyntax'],
    [
      'two thousand operations',
      'PATCH',
      one,
      patch(...(many(2_000, () => ({ op: 'add', value: {} })) as object[])),
      400,
      'tooMany',
    ],
    ['a removal of nothing', 'PATCH', one, patch({ op: 'remove' }), 400, 'invalidPath'],
    ['a group without a name', 'POST', () => '/Groups', { members: [] }, 400, 'invalidValue'],
    ['the name of another group', 'POST', () => '/Groups', { displayName: 'HERE' }, 409, 'uniqueness'],
    ['a member of another organization', 'PATCH', group, add([{ value: ids.otherUser }]), 400, 'invalidValue'],
    ['a member who is an account', 'PATCH', group, add([{ value: firm.owner.userId }]), 400, 'invalidValue'],
    ['a group as a member', 'PATCH', group, add([{ value: ids.group }]), 400, 'invalidValue'],
    ['members without a value', 'PATCH', group, add([{}]), 400, 'invalidValue'],
    ['members that are numbers', 'PATCH', group, add([7]), 400, 'invalidSyntax'],
    ['two thousand members', 'PATCH', group, add(many(2_000, (at) => ({ value: `scu_${at}` }))), 400, 'tooMany'],
    ['the removal of a name', 'PATCH', group, patch({ op: 'remove', path: 'displayName' }), 400, 'mutability'],
    [
      'members by another filter',
      'PATCH',
      group,
      patch({ op: 'remove', path: 'members[display co "a"]' }),
      400,
      'invalidFilter',
    ],
    [
      'a member with a NUL',
      'PATCH',
      group,
      patch({ op: 'remove', path: 'members[value eq "\\u0000"]' }),
      400,
      'invalidFilter',
    ],
    ...(
      [
        ['POST', () => '/Users', entraUser(`q${unique()}@${firm.domain}`)],
        ['PUT', one, entraUser(`q${unique()}@${firm.domain}`)],
        ['PATCH', one, patch({ op: 'replace', path: 'displayName', value: unique() })],
        ['POST', () => '/Groups', { displayName: unique() }],
        ['PATCH', group, patch({ op: 'replace', path: 'displayName', value: unique() })],
      ] as const
    ).map(
      ([method, path, body]) =>
        [
          `a ${method} with too many attributes for its answer`,
          method,
          () => `${path()}?attributes=${many(51).join(',')}`,
          body,
          400,
          'invalidValue',
        ] as [string, typeof method, () => string, unknown, number, string],
    ),
    ['a count that is none', 'GET', () => '/Users?count=all', undefined, 400, 'invalidValue'],
    ['a startIndex beyond numbers', 'GET', () => '/Users?startIndex=99999999999999', undefined, 400, 'invalidValue'],
    ['two filters', 'GET', () => '/Users?filter=id%20pr&filter=id%20pr', undefined, 400, 'invalidValue'],
    ['an order by nothing', 'GET', () => '/Users?sortBy=password', undefined, 400, 'invalidValue'],
    [
      'a thousand attributes',
      'GET',
      () => `/Users?attributes=${many(1_000).join(',')}`,
      undefined,
      400,
      'invalidValue',
    ],
  ];

  test('each is refused in the form of SCIM, and changes nothing', async () => {
    // where addresses come from: one that the firm could really make
    const before = await checksums();
    for (const [what, method, path, body, status, scimType] of rows()) {
      const answer = await firm.scim(method, path(), body);
      expect([what, answer.status, answer.body], what).toEqual([
        what,
        status,
        { schemas: [ERROR], status: String(status), ...(scimType && { scimType }), detail: expect.any(String) },
      ]);
      expect(answer.headers['content-type']).toBe('application/scim+json; charset=utf-8');
    }
    expect(await checksums()).toEqual(before);
  });

  test('a body that is too large, or of another type', async () => {
    const large = await firm.scim('POST', '/Users', { userName: 'a', title: 'x'.repeat(600_000) });
    expect([large.status, large.body.schemas]).toEqual([413, [ERROR]]);
    const form = await firm.scim('POST', '/Users', 'userName=a', {
      'content-type': 'application/x-www-form-urlencoded',
    });
    expect([form.status, form.body.schemas]).toEqual([415, [ERROR]]);
  });
});

test('nobody makes themselves more than a member: no roles, no passwords, no fields of the service', async () => {
  const userName = `m${unique()}@${firm.domain}`;
  const { status, body } = await firm.scim('POST', '/Users', {
    ...entraUser(userName),
    roles: [{ value: 'owner', primary: true }],
    role: 'owner',
    entitlements: [{ value: 'admin' }],
    groups: [{ value: ids.group }],
    password: 'correct horse battery staple',
    isPlatformAdmin: true,
    is_platform_admin: true,
    userId: firm.owner.userId,
    orgId: other.owner.orgId,
    savedRoles: [{ workspaceId: null, role: 'owner' }],
    __proto__: { role: 'owner' },
    constructor: { prototype: { role: 'owner' } },
    id: 'scu_mine',
  });
  expect([status, body.roles, body.role]).toEqual([201, undefined, undefined]);
  expect(body.id).not.toBe('scu_mine');
  for (const operation of [
    { op: 'add', path: 'roles', value: [{ value: 'owner' }] },
    { op: 'replace', path: 'password', value: 'correct horse battery staple' },
    { op: 'replace', path: 'roles[primary eq "True"].value', value: 'owner' },
    { op: 'replace', value: { roles: [{ value: 'owner' }], userId: firm.owner.userId, savedRoles: [] } },
  ])
    expect((await firm.scim('PATCH', `/Users/${body.id}`, patch(operation))).status).toBe(200);
  const userId = await accountOf(app, body.id);
  expect(await db().user.findUniqueOrThrow({ where: { id: userId } })).toMatchObject({
    passwordHash: null,
    isPlatformAdmin: false,
    homeOrgId: firm.owner.orgId,
  });
  expect(await rolesOf(app, firm.owner.orgId, userId)).toEqual({ organization: 'member', workspaces: [] });
  expect((await firm.scim('GET', `/Groups/${ids.group}`)).body.members).toEqual([]);
});

test('a userName is there once, in any case and any form of its characters', async () => {
  const name = `Åsa.${unique()}@${firm.domain}`;
  const made = await firm.scim('POST', '/Users', { userName: name, active: false });
  expect(made.status).toBe(201);
  for (const same of [name, name.toUpperCase(), name.normalize('NFD'), ` ${name} `])
    expect((await firm.scim('POST', '/Users', { userName: same, active: false })).body).toMatchObject({
      status: '409',
      scimType: 'uniqueness',
    });
  const second = await provision(firm);
  const taken = await firm.scim(
    'PATCH',
    `/Users/${second.id}`,
    patch({ op: 'replace', path: 'userName', value: name }),
  );
  expect([taken.status, taken.body.scimType]).toEqual([409, 'uniqueness']);
  expect((await other.scim('POST', '/Users', { userName: name, active: false })).status).toBe(201);
});

test('of two who create the same user at once, one does', async () => {
  const user = entraUser(`t${unique()}@${firm.domain}`);
  const answers = await Promise.all(many(6).map(() => firm.scim('POST', '/Users', user)));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409, 409, 409, 409, 409]);
});

test('a stale If-Match changes nothing, and a known version is not sent again', async () => {
  const { id, meta } = await provision(firm);
  const rename = (ifMatch: string, value: string) =>
    firm.scim('PATCH', `/Users/${id}`, patch({ op: 'replace', path: 'displayName', value }), { 'if-match': ifMatch });
  const first = await rename(meta.version, 'One');
  expect([first.status, first.body.meta.version]).toEqual([200, 'W/"2a"']);
  for (const stale of [meta.version, '"1a"', 'W/"2i"', '"nonsense"', `${'"x",'.repeat(5_000)}`]) {
    const answer = await rename(stale, 'Two');
    expect([answer.status, answer.body.status]).toEqual([412, '412']);
  }
  expect((await firm.scim('DELETE', `/Users/${id}`, undefined, { 'if-match': meta.version })).status).toBe(412);
  expect((await firm.scim('GET', `/Users/${id}`)).body.displayName).toBe('One');
  const known = await firm.scim('GET', `/Users/${id}`, undefined, { 'if-none-match': 'W/"2a"' });
  expect([known.status, known.body]).toEqual([304, null]);
  expect((await rename('*', 'Three')).status).toBe(200);
  expect((await rename('W/"1a", W/"3a"', 'Four')).status).toBe(200);
  const group = await firm.scim('POST', '/Groups', { displayName: unique() });
  const one = `/Groups/${group.body.id}`;
  const members = patch({ op: 'add', path: 'members', value: [{ value: id }] });
  expect((await firm.scim('PATCH', one, members, { 'if-match': 'W/"1"' })).status).toBe(204);
  expect((await firm.scim('PATCH', one, members, { 'if-match': 'W/"1"' })).status).toBe(412);
});
