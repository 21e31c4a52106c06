import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { VerifiedIdentity } from '../../../src/identity/sso/verified-identity.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { fill } from '../../support/fill.ts';
import { register } from '../../support/person.ts';
import {
  accountOf,
  type Company,
  clientOf,
  company,
  GROUP,
  newToken,
  patch,
  provision,
  rolesOf,
  unique,
} from './directories.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await register(app, { name: 'operator' }); // the first account administers the platform
});
afterAll(() => app.close());

const db = () => app.database.prisma;

const newGroup = async ({ scim }: Company, displayName: string, members: readonly string[] = [], more: object = {}) => {
  const body = { schemas: [GROUP], displayName, members: members.map((value) => ({ value })), ...more };
  const answer = await scim('POST', '/Groups', body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body as { id: string; members: object[]; meta: { version: string } };
};

/** A company whose provider maps groups to roles, in the organization and in its workspace. */
async function mapped(): Promise<Company> {
  const firm = await company(app);
  const { owner, providerId } = firm;
  const url = `/v1/orgs/${owner.orgId}/identity-providers/${providerId}`;
  const { status, body } = await owner.call('PUT', url, {
    group_mappings: [
      { group: 'Editors', role_id: 'editor' },
      { group: 'crew', role_id: 'member', workspace_id: owner.workspaceId },
      { group: 'id-of-admins', role_id: 'admin' },
      { group: 'Owners', role_id: 'owner' },
    ],
  });
  expect(status, JSON.stringify(body)).toBe(200);
  return firm;
}

test('creates, reads, renames and deletes a group', async () => {
  const firm = await company(app);
  const { scim, owner } = firm;
  const ann = await provision(firm);
  const group = await newGroup(firm, 'Tour Guides', [ann.id], { externalId: 'g-1' });
  expect(group).toEqual({
    schemas: [GROUP],
    id: expect.stringMatching(/^scg_/),
    externalId: 'g-1',
    displayName: 'Tour Guides',
    members: [
      { value: ann.id, display: 'Ann Example', type: 'User', $ref: expect.stringContaining(`/Users/${ann.id}`) },
    ],
    meta: {
      resourceType: 'Group',
      created: expect.any(String),
      lastModified: expect.any(String),
      location: expect.stringContaining(`/scim/v2/${owner.orgId}/Groups/${group.id}`),
      version: 'W/"1"',
    },
  });
  const one = `/Groups/${group.id}`;
  const user = await scim('GET', `/Users/${ann.id}?attributes=groups`);
  expect(user.body.groups).toEqual([{ value: group.id, display: 'Tour Guides', $ref: expect.any(String) }]);
  expect((await scim('GET', `${one}?excludedAttributes=members`)).body.members).toBeUndefined();
  expect((await scim('PUT', one, { displayName: 'Guides' })).body).toMatchObject({
    displayName: 'Guides',
    members: [],
  });
  expect((await scim('GET', one)).body.externalId).toBeUndefined();
  expect(await scim('DELETE', one)).toMatchObject({ status: 204, body: null });
  expect((await scim('GET', one)).status).toBe(404);
  const { rows } = await app.database.pool.query(
    `select action, metadata->>'scim_token_id' as token from activity where resource_id = $1 order by id`,
    [group.id],
  );
  expect(rows).toEqual(['create', 'update', 'delete'].map((action) => ({ action, token: firm.tokenId })));
});

describe('groups grant roles by the mappings of the identity provider', () => {
  test('by name and by external identifier, in the organization and in workspaces, and take them away', async () => {
    const firm = await mapped();
    const { scim, owner } = firm;
    const [ann, bea] = [await provision(firm), await provision(firm)];
    const [annId, beaId] = [await accountOf(app, ann.id), await accountOf(app, bea.id)];
    const roles = async (userId: string) => rolesOf(app, owner.orgId, userId);
    const editors = await newGroup(firm, 'Editors', [ann.id, bea.id]);
    const crew = await newGroup(firm, 'crew', [ann.id]);
    expect(await roles(annId)).toEqual({ organization: 'editor', workspaces: ['member'] });
    expect(await roles(beaId)).toEqual({ organization: 'editor', workspaces: [] });
    const admins = await newGroup(firm, 'Anything', [], { externalId: 'id-of-admins' });
    const add = patch({ op: 'Add', path: 'members', value: [{ value: bea.id }] });
    expect((await scim('PATCH', `/Groups/${admins.id}`, add)).status).toBe(204);
    expect((await roles(beaId)).organization).toBe('admin');
    const remove = patch({ op: 'Remove', path: 'members', value: [{ value: bea.id }] });
    expect((await scim('PATCH', `/Groups/${admins.id}`, remove)).status).toBe(204);
    expect((await roles(beaId)).organization).toBe('editor');
    expect(
      (await scim('PATCH', `/Groups/${editors.id}`, patch({ op: 'replace', value: { displayName: 'Others' } }))).status,
    ).toBe(204);
    expect([(await roles(annId)).organization, (await roles(beaId)).organization]).toEqual(['member', 'member']);
    expect((await scim('DELETE', `/Groups/${crew.id}`)).status).toBe(204);
    expect((await roles(annId)).workspaces).toEqual([]);
  });

  test('what the directory says counts at a sign-in too, for whom the directory knows', async () => {
    const firm = await mapped();
    const ann = await provision(firm);
    const annId = await accountOf(app, ann.id);
    const provider = await db().identityProvider.findUniqueOrThrow({ where: { id: firm.providerId } });
    const claims = (groups: string[]): VerifiedIdentity => ({
      subject: `s-${ann.id}`,
      email: ann.userName,
      emailVerified: true,
      groups,
      claims: {},
    });
    const signIn = (groups: string[]) =>
      app.services.federatedSignIn.signIn(provider, claims(groups), {
        principal: null,
        request: {
          traceId: unique(),
          method: 'GET',
          path: '/v1/auth/sso/callback/oidc',
          ip: '127.0.0.1',
          successStatus: 200,
          startedAt: performance.now(),
          recorded: false,
          isRest: true,
        },
      });
    // as long as no group of the directory is mapped, the claims count
    await signIn(['Editors']);
    expect((await rolesOf(app, firm.owner.orgId, annId)).organization).toBe('editor');
    await newGroup(firm, 'crew', [ann.id]);
    await signIn(['id-of-admins', 'Editors']);
    expect(await rolesOf(app, firm.owner.orgId, annId)).toEqual({ organization: 'member', workspaces: ['member'] });
  });

  test('who comes back gets what the groups say now', async () => {
    const firm = await mapped();
    const { scim, owner } = firm;
    const ann = await provision(firm);
    const annId = await accountOf(app, ann.id);
    const editors = await newGroup(firm, 'Editors', [ann.id]);
    const active = (value: boolean) =>
      scim('PATCH', `/Users/${ann.id}`, patch({ op: 'replace', path: 'active', value }));
    await active(false);
    expect((await rolesOf(app, owner.orgId, annId)).organization).toBeNull();
    await active(true);
    expect((await rolesOf(app, owner.orgId, annId)).organization).toBe('editor');
    await active(false);
    await scim('PATCH', `/Groups/${editors.id}`, patch({ op: 'remove', path: `members[value eq "${ann.id}"]` }));
    expect((await rolesOf(app, owner.orgId, annId)).organization).toBeNull();
    await active(true);
    expect((await rolesOf(app, owner.orgId, annId)).organization).toBe('member');
  });

  test('nobody rises above the maker of the token, and who is above is not touched', async () => {
    const firm = await mapped();
    const { owner } = firm;
    const admin = await register(app, { name: 'admin' });
    await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: admin.userId, role: 'admin' });
    const scim = clientOf(app, firm.base, (await newToken(admin, owner.orgId)).token);
    const ann = await provision(firm);
    const annId = await accountOf(app, ann.id);
    const owners = await newGroup(firm, 'Owners');
    const add = patch({ op: 'add', path: 'members', value: [{ value: ann.id }] });
    const refused = await scim('PATCH', `/Groups/${owners.id}`, add);
    expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining("the role 'owner'")]);
    expect((await firm.scim('GET', `/Groups/${owners.id}`)).body.members).toEqual([]);
    expect((await firm.scim('PATCH', `/Groups/${owners.id}`, add)).status).toBe(204);
    expect((await rolesOf(app, owner.orgId, annId)).organization).toBe('owner');
    for (const answer of [
      await scim('PATCH', `/Groups/${owners.id}`, patch({ op: 'remove', path: 'members' })),
      await scim('DELETE', `/Groups/${owners.id}`),
      await scim('DELETE', `/Users/${ann.id}`),
      await scim('PATCH', `/Users/${ann.id}`, patch({ op: 'replace', path: 'displayName', value: 'Mallory' })),
    ])
      expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining("the role 'owner'")]);
    expect((await rolesOf(app, owner.orgId, annId)).organization).toBe('owner');
    await app.services.activity.flush();
    const where = { orgId: owner.orgId, resourceType: 'scim_group', statusCode: 403 };
    const records = await db().activity.findMany({ where, orderBy: { id: 'asc' } });
    expect(records.map(({ action, principalType }) => [action, principalType])).toEqual([
      ['update', 'system'],
      ['update', 'system'],
      ['delete', 'system'],
    ]);
  });

  test('nor is anybody made ready to rise: no stranger, no name of a group, no inactive provider', async () => {
    const firm = await mapped();
    const { owner } = firm;
    const admin = await register(app, { name: 'admin' });
    await owner.call('POST', `/v1/orgs/${owner.orgId}/members`, { user_id: admin.userId, role: 'admin' });
    const scim = clientOf(app, firm.base, (await newToken(admin, owner.orgId)).token);
    const [bob, eve] = [await provision(firm), await provision(firm)];
    const owners = await newGroup(firm, 'Owners');
    const plain = await newGroup(firm, 'Plain', [bob.id]);
    const active = (value: boolean) => patch({ op: 'replace', path: 'active', value });
    const add = (id: string) => patch({ op: 'add', path: 'members', value: [{ value: id }] });
    const rename = (value: object) => patch({ op: 'replace', value });
    const one = `/Groups/${owners.id}`;
    // an active user, and one who is no member and may become one at any time
    expect((await scim('PATCH', `/Users/${bob.id}`, active(false))).status).toBe(200);
    const refused = async () => [
      await scim('PATCH', one, add(bob.id)),
      await scim('PATCH', one, add(eve.id)),
      await scim('PUT', one, { displayName: 'Owners', members: [{ value: bob.id }] }),
      await scim('PATCH', `/Groups/${plain.id}`, rename({ externalId: 'Owners' })),
      await scim('POST', '/Groups', { displayName: unique(), externalId: 'Owners', members: [{ value: bob.id }] }),
      await scim('POST', '/Groups', { displayName: unique(), externalId: 'Owners' }),
      await scim('PATCH', one, rename({ displayName: 'Former owners' })),
      await scim('DELETE', one),
    ];
    const no = [403, expect.stringContaining("the role 'owner'")];
    const answers = async () => (await refused()).map(({ status, body }) => [status, body?.detail]);
    expect(await answers()).toEqual(Array(8).fill(no));
    await db().identityProvider.update({ where: { id: firm.providerId }, data: { isActive: false } });
    expect(await answers()).toEqual(Array(8).fill(no));
    // nor does somebody come in by a group in which the owner's token has put them meanwhile
    expect((await firm.scim('PATCH', one, add(bob.id))).status).toBe(204);
    const back = await scim('PATCH', `/Users/${bob.id}`, active(true));
    expect([back.status, back.body.detail]).toEqual(no);
    expect((await firm.scim('PATCH', `/Users/${bob.id}`, active(true))).status).toBe(200);
    expect((await firm.scim('GET', one)).body.members).toEqual([expect.objectContaining({ value: bob.id })]);
    // what grants no more than the maker has goes on as ever
    expect((await scim('PATCH', `/Groups/${plain.id}`, rename({ displayName: 'id-of-admins' }))).status).toBe(204);
    expect((await scim('PATCH', `/Groups/${plain.id}`, add(eve.id))).status).toBe(204);
  });

  test('the groups do not take the last owner away, and the answer says why', async () => {
    const firm = await mapped();
    const { owner, domain } = firm;
    const email = `o${unique()}@${domain}`;
    const ann = await provision(firm);
    const annId = await accountOf(app, ann.id);
    const owners = await newGroup(firm, 'Owners', [ann.id]);
    expect((await rolesOf(app, owner.orgId, annId)).organization).toBe('owner');
    // the first owner lost the account, and the token is of another administrator's making
    await db().user.update({ where: { id: annId }, data: { email, emailKey: email } });
    await db().scimToken.update({ where: { id: firm.tokenId }, data: { createdBy: annId } });
    await db().user.update({ where: { id: owner.userId }, data: { isActive: false } });
    const answer = await firm.scim('DELETE', `/Groups/${owners.id}`);
    expect([answer.status, answer.body.detail]).toEqual([409, expect.stringContaining('last owner')]);
    expect((await rolesOf(app, owner.orgId, annId)).organization).toBe('owner');
  });
});

test('a list shows the first of many members and groups, and a directory has an end', async () => {
  const firm = await company(app);
  const { orgId } = firm.owner;
  const { pool } = app.database;
  await fill(
    app,
    `insert into scim_users (id, org_id, user_name, user_name_key)
      select 'scu_' || $1 || lpad(n::text, 16, '0'), $1, 'n' || n, 'n' || n from generate_series(1, 99999) n`,
    [orgId],
  );
  const large = await newGroup(firm, 'Large');
  await pool.query(
    `insert into scim_group_members (group_id, scim_user_id)
      select $2, id from scim_users where org_id = $1 order by id limit 1005`,
    [orgId, large.id],
  );
  const listed = async (path: string, name: 'members' | 'groups') =>
    (await firm.scim('GET', path)).body.Resources.map(
      (one) => (one as object as Partial<Record<string, object[]>>)[name]?.length,
    );
  expect(await listed('/Groups', 'members')).toEqual([1_000]);
  expect((await firm.scim('GET', `/Groups/${large.id}`)).body.members).toHaveLength(1_005);
  await pool.query(
    `with made as (insert into scim_groups (id, org_id, display_name, display_key)
      select 'scg_' || $1 || n, $1, 'g' || n, 'g' || n from generate_series(1, 104) n returning id)
      insert into scim_group_members (group_id, scim_user_id) select made.id, s.id from made,
        (select id from scim_users where org_id = $1 order by id limit 1) s`,
    [orgId],
  );
  expect(await listed('/Users?attributes=groups&count=2', 'groups')).toEqual([100, 1]);
  const [first] = (await firm.scim('GET', '/Users?count=1')).body.Resources;
  expect((await firm.scim('GET', `/Users/${first!.id}?attributes=groups`)).body.groups).toHaveLength(105);
  const add = () => firm.scim('POST', '/Users', { userName: unique(), active: false });
  expect((await add()).status).toBe(201);
  const refused = await add();
  expect([refused.status, refused.body.scimType]).toEqual([409, 'tooMany']);
});

test('a thousand members are one change, and lists cost the same whatever their size', async () => {
  const firm = await company(app);
  const { orgId } = firm.owner;
  await db().scimUser.createMany({
    data: Array.from({ length: 1_000 }, (_, at) => ({
      id: `scu_${String(at).padStart(26, '0')}`.replace('scu_', `scu_${unique().slice(0, 4)}`),
      orgId,
      userName: `n${at}`,
      userNameKey: `n${at}`,
    })),
  });
  const rows = await db().scimUser.findMany({ where: { orgId }, select: { id: true } });
  const group = await newGroup(
    firm,
    'All',
    rows.map(({ id }) => id),
  );
  expect(group.members).toHaveLength(1_000);
  const one = rows[0]!.id;
  const again = await firm.scim(
    'PATCH',
    `/Groups/${group.id}`,
    patch({ op: 'add', path: 'members', value: [{ value: one }] }),
  );
  expect([again.status, (await firm.scim('GET', `/Groups/${group.id}`)).body.meta.version]).toEqual([204, 'W/"1"']);
  const count = async (path: string) => {
    const { sql } = app.services;
    const read = sql.read.bind(sql);
    let statements = 0;
    sql.read = ((text: string, values: unknown[]) => {
      if (/scim_(?:users|groups) s/.test(text)) statements += 1;
      return read(text, values);
    }) as typeof sql.read;
    try {
      const { body } = await firm.scim('GET', path);
      return [statements, body.Resources.length, body.totalResults];
    } finally {
      sql.read = read;
    }
  };
  expect(await count('/Users?count=1')).toEqual([2, 1, 1_000]);
  expect(await count('/Users?count=100&attributes=userName,groups')).toEqual([2, 100, 1_000]);
  expect(await count('/Users?count=5000&startIndex=950')).toEqual([2, 51, 1_000]);
  expect(await count('/Groups')).toEqual([2, 1, 1]);
});
