import { isInputObjectType } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { snakeCase } from '../support/names.ts';
import { gentlestFirst, routeOf } from '../support/operations.ts';
import { injectable, partsOf } from '../support/requests.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
  // so that it is seen who makes themselves verified
  await app.database.pool.query('update users set is_verified = false');
  app.services.authentication.sessionsChanged();
});
afterAll(() => app.close());

/** What no caller decides: each is tried on every route that takes a body. */
const guarded = {
  id: 'smuggled',
  org_id: 'smuggled',
  workspace_id: 'smuggled',
  user_id: 'smuggled',
  owner_id: 'smuggled',
  created_by: 'smuggled',
  created_at: '1999-01-01T00:00:00Z',
  updated_at: '1999-01-01T00:00:00Z',
  deleted_at: '1999-01-01T00:00:00Z',
  is_verified: true,
  is_platform_admin: true,
  roles: ['smuggled'],
  password_hash: 'smuggled',
  home_org_id: 'smuggled',
  bucket_status: 'smuggled',
  storage_bucket: 'smuggled',
  settings: { smuggled: true },
  token_hash: 'smuggled',
  added_by: 'smuggled',
  number: 999_999,
};

const writing = gentlestFirst().filter(({ type, body }) => type === 'mutation' && body);

/** Inputs that name one of these on purpose. A new one is added here on purpose, or not at all. */
const asked = [
  'AddOrganizationMemberInput.userId',
  'AddWorkspaceMemberInput.userId',
  'CreateInvitationInput.workspaceId',
  'CreateSecretInput.workspaceId',
  // whose events it receives
  'CreateWebhookInput.workspaceId',
  'EntityReferenceInput.id',
  'IdentityGroupMappingInput.workspaceId',
  // which of those that are there an import changes
  'ImportedEntityInput.id',
  'LinkIdentityInput.userId',
  // where the caller does not want them
  'NotificationMuteInput.orgId',
  'NotificationMuteInput.workspaceId',
  'NotificationScheduleInput.orgId',
  'NotificationScheduleInput.workspaceId',
  'SwitchOrganizationInput.orgId',
];

test('no input takes what no caller decides', () => {
  const names = new Set(Object.keys(guarded));
  const found = Object.values(schema.getTypeMap())
    .filter((type) => isInputObjectType(type))
    .flatMap((type) =>
      Object.keys(type.getFields()).flatMap((field) => (names.has(snakeCase(field)) ? `${type.name}.${field}` : [])),
    );
  expect(found.sort()).toEqual(asked);
});

/** Routes that took a request with all of it. */
const taking: string[] = [];

test.each(writing.map((operation) => [routeOf(operation), operation] as const))(
  '%s takes nothing that it does not ask for, neither in REST names nor in those of GraphQL',
  async (title, operation) => {
    const taken = new Set(Object.keys(operation.body!.type.getFields()).map(snakeCase));
    const camelCase = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const extra = Object.entries(guarded).filter(([name]) => !taken.has(name));
    const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken });
    parts.body = {
      ...Object.fromEntries(extra),
      ...Object.fromEntries(extra.map(([name, value]) => [camelCase(name), value])),
      ...(parts.body as object),
    };
    const answer = await app.server.inject(injectable(operation, parts));
    // nothing may be found wrong with a field that is not asked for
    if (answer.statusCode === 422) {
      const { detail } = answer.json<{ detail: { loc: string[] }[] }>();
      expect(detail).not.toEqual([]);
      for (const { loc } of detail) expect(taken, answer.body).toContain(loc[1]);
    }
    expect(answer.statusCode, answer.body).toBeLessThan(500);
    expect(answer.body).not.toMatch(/smuggled|1999-01-01|999999/);
    expect(answer.body).not.toContain('"is_verified":true');
    if (answer.statusCode < 300) taking.push(title);
  },
);

test('most of the routes took it, so that it could have reached a row', () => {
  expect(taking.length).toBeGreaterThan(writing.length / 2);
});

test('nothing of it reached a row', async () => {
  const { rows } = await app.database.pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'
      and table_name !~ '^(activity|_prisma)'`,
  );
  expect(rows.length).toBeGreaterThan(20);
  for (const { name } of rows) {
    const found = await app.database.pool.query(
      `select 1 from ${name} t where t::text ~ 'smuggled|1999-01-01' limit 1`,
    );
    expect(found.rowCount, name).toBe(0);
  }
  expect(await app.database.prisma.user.count({ where: { isPlatformAdmin: true } })).toBe(1);
});
