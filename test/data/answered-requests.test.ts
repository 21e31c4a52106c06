import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ActivityEntry, type ActivityOutcome, ActivityRecorder } from '../../src/data/activity.ts';
import type { AnyCaller } from '../../src/kernel/caller.ts';
import { newId } from '../../src/kernel/ids.ts';
import type { Principal } from '../../src/kernel/principal.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import {
  addOrganization,
  addUser,
  addWorkspace,
  type BareDatabase,
  openBareDatabase,
} from '../support/bare-database.ts';

let database: BareDatabase;
let recorder: ActivityRecorder;
let memberId: string;
let strangerId: string;
/** An organization of the member with one place of each kind, and another organization with the same. */
let ours: Required<Places>;
let theirs: Required<Places>;

interface Places {
  orgId: string;
  workspaceId?: string;
  namespaceId?: string;
  environmentId?: string;
  appId?: string;
}

async function addPlaces(members: Record<string, 'viewer'>): Promise<Required<Places>> {
  const orgId = await addOrganization(database, members);
  const workspaceId = await addWorkspace(database, orgId);
  const [namespaceId, environmentId, appId] = [newId('namespace'), newId('environment'), newId('app')];
  const of = { orgId, workspaceId, name: 'n' };
  await database.add('namespaces', { ...of, id: namespaceId, slug: 'default' });
  await database.add('environments', { ...of, id: environmentId, slug: 's' });
  await database.add('apps', { ...of, id: appId });
  return { orgId, workspaceId, namespaceId, environmentId, appId };
}

beforeAll(async () => {
  database = await openBareDatabase();
  recorder = new ActivityRecorder(database.sql, (error) => {
    throw error;
  });
  memberId = (await addUser(database)).id;
  strangerId = (await addUser(database)).id;
  ours = await addPlaces({ [memberId]: 'viewer' });
  theirs = await addPlaces({});
});
afterAll(() => database.close());

const known = { username: 'u', isPlatformAdmin: false, isVerified: true };
const callerOf = (principal: Principal | null): AnyCaller => ({
  principal,
  request: { ...systemCaller('a test').request, method: 'GET', path: '/' },
});
const member = () => callerOf({ ...known, type: 'user', userId: memberId, sessionId: 's', orgId: null, token: null });
const stranger = () =>
  callerOf({ ...known, type: 'user', userId: strangerId, sessionId: 's', orgId: null, token: null });

interface Stored {
  [column: string]: string | null | Readonly<Record<string, string>>;
  named: Readonly<Record<string, string>> | null;
}

/** What is stored of operations of a caller. */
async function stored(
  caller: AnyCaller,
  outcome: ActivityOutcome,
  ...entries: Partial<ActivityEntry>[]
): Promise<Stored[]> {
  for (const entry of entries)
    recorder.record(
      caller,
      { action: 'read', resourceType: 'app', resourceId: null, orgId: ours.orgId, ...entry },
      outcome,
    );
  await recorder.flush();
  return database.sql.read<Stored>(
    `select org_id, user_id, workspace_id, namespace_id, environment_id, app_id, resource_id, named
       from activity where trace_id = $1 order by id`,
    [caller.request.traceId],
  );
}

const done: ActivityOutcome = { statusCode: 200 };
const refused: ActivityOutcome = { statusCode: 403, errorCode: 'FORBIDDEN' };
const absent: ActivityOutcome = { statusCode: 404, errorCode: 'RESOURCE_NOT_FOUND' };
const columnsOf = ({ orgId, workspaceId, namespaceId, environmentId, appId }: Places) => ({
  org_id: orgId,
  workspace_id: workspaceId ?? null,
  namespace_id: namespaceId ?? null,
  environment_id: environmentId ?? null,
  app_id: appId ?? null,
});

describe('the record of a request that has been answered', () => {
  it('has all that it named where that is there', async () => {
    const resourceId = ours.appId;
    const whole = { ...columnsOf(ours), user_id: memberId, resource_id: resourceId, named: null };
    expect(await stored(member(), done, { ...ours, resourceId })).toEqual([whole]);
    expect(await stored(member(), refused, { ...ours, resourceId })).toEqual([whole]);
    expect(await stored(stranger(), done, { ...ours, resourceId })).toEqual([{ ...whole, user_id: strangerId }]);
  });

  it('has no user and no place of somebody who is not a member and was refused', async () => {
    expect(await stored(stranger(), refused, { ...ours, resourceId: ours.appId })).toEqual([
      {
        ...columnsOf({ orgId: ours.orgId }),
        user_id: null,
        resource_id: null,
        named: {
          user_id: strangerId,
          workspace_id: ours.workspaceId,
          namespace_id: ours.namespaceId,
          environment_id: ours.environmentId,
          app_id: ours.appId,
          resource_id: ours.appId,
        },
      },
    ]);
  });

  it('has a token only where its user may be listed', async () => {
    const tokenOf = (userId: string): AnyCaller =>
      callerOf({
        ...known,
        type: 'api_token',
        userId,
        orgId: ours.orgId,
        token: {
          id: 'tok_1',
          type: 'pat',
          familyId: 'tok_1',
          hash: 'h',
          orgId: ours.orgId,
          appId: null,
          permissions: new Set(),
          workspaceIds: [],
          namespaceIds: [],
          environmentIds: [],
          impliedWorkspaceIds: null,
          endpoints: null,
          rateLimitRps: null,
          rateLimitBurst: null,
          root: null,
        },
      });
    const tokensOf = async (userId: string) => {
      const caller = tokenOf(userId);
      await stored(caller, refused, {});
      return database.sql.read(
        `select token_id as "inColumn", named->>'token_id' as named from activity where trace_id = $1`,
        [caller.request.traceId],
      );
    };
    expect(await tokensOf(memberId)).toEqual([{ inColumn: 'tok_1', named: null }]);
    expect(await tokensOf(strangerId)).toEqual([{ inColumn: null, named: 'tok_1' }]);
  });

  it.each([
    ['workspaceId', 'workspace_id'],
    ['namespaceId', 'namespace_id'],
    ['environmentId', 'environment_id'],
    ['appId', 'app_id'],
  ] as const)('has a place only in its organization: %s', async (property, column) => {
    for (const id of [theirs[property], 'nothing']) {
      const named = { [column]: id };
      const entry = { [property]: id, resourceId: ours.appId };
      const [success] = await stored(member(), done, entry);
      expect([success?.[column], success?.resource_id, success?.named]).toEqual([null, ours.appId, named]);
      const [failure] = await stored(member(), refused, entry);
      expect([failure?.[column], failure?.resource_id]).toEqual([null, null]);
      expect(failure?.named).toEqual({ ...named, resource_id: ours.appId });
    }
  });

  it('has a resource that was refused only where that is there', async () => {
    const resourceOf = async (outcome: ActivityOutcome, resourceId: string | null, caller = member()) =>
      (await stored(caller, outcome, { resourceId })).map(({ resource_id, named }) => [resource_id, named]);
    expect(await resourceOf(refused, ours.appId)).toEqual([[ours.appId, null]]);
    expect(await resourceOf(absent, ours.appId)).toEqual([[null, { resource_id: ours.appId }]]);
    expect(await resourceOf(refused, theirs.appId)).toEqual([[null, { resource_id: theirs.appId }]]);
    expect(await resourceOf(refused, null)).toEqual([[null, null]]);
    expect(await resourceOf(done, 'nothing')).toEqual([['nothing', null]]);
  });

  it('has no organization that there is not, and all of it where none is named', async () => {
    const nowhere = await stored(member(), refused, { orgId: 'org_NONE', workspaceId: 'ws_NONE', resourceId: 'x' });
    expect(nowhere).toMatchObject([
      { org_id: null, workspace_id: null, resource_id: null, named: { org_id: 'org_NONE', workspace_id: 'ws_NONE' } },
    ]);
    const free = await stored(stranger(), refused, { orgId: null, workspaceId: 'ws_NONE', resourceId: 'x' });
    expect(free).toMatchObject([{ user_id: strangerId, workspace_id: 'ws_NONE', resource_id: 'x', named: null }]);
  });

  it('has the namespace and the entitlement that a word stands for', async () => {
    const [modelId, entitlementId] = [newId('model'), newId('model_entitlement')];
    const of = { orgId: ours.orgId, logicalModelId: 'gpt' };
    await database.add('logical_models', { ...of, id: modelId, name: 'n' });
    await database.add('model_entitlements', { ...of, id: entitlementId, workspaceId: ours.workspaceId, modelId });
    const place = { workspaceId: ours.workspaceId };
    const named = await stored(
      member(),
      done,
      { ...place, namespaceId: 'default', resourceId: 'default' },
      { ...place, resourceType: 'namespace', resourceId: 'default' },
      { ...place, resourceType: 'namespace', resourceId: ours.namespaceId },
      { ...place, resourceType: 'model_entitlement', resourceId: 'gpt' },
      { ...place, resourceType: 'model_entitlement', resourceId: 'other' },
      { workspaceId: theirs.workspaceId, resourceType: 'model_entitlement', resourceId: 'gpt' },
    );
    expect(named.map((row) => [row.namespace_id, row.resource_id])).toEqual([
      [ours.namespaceId, 'default'],
      [null, ours.namespaceId],
      [null, ours.namespaceId],
      [null, entitlementId],
      [null, 'other'],
      [null, 'gpt'],
    ]);
  });
});

describe('the record of a failed sign-in', () => {
  const anonymous = () => callerOf(null);
  const attempt = (accountId: string, orgId: string | null = null) =>
    ({ action: 'login', resourceType: 'user', resourceId: accountId, orgId, accountId }) as const;
  const organizationsOf = async (caller: AnyCaller, accountId: string, orgId: string | null = null) =>
    (await stored(caller, refused, attempt(accountId, orgId))).map((row) => row.org_id);

  it('goes to each organization that made the account, or that its user has been in', async () => {
    const home = await addOrganization(database);
    const { id } = await addUser(database, { homeOrgId: home });
    await database.pool.query(
      `insert into organization_members (id, org_id, user_id, role) values ($1, $2, $3, 'viewer')`,
      [newId('organization_member'), home, id],
    );
    const [been, deleted] = [
      await addOrganization(database, { [id]: 'viewer' }),
      await addOrganization(database, { [id]: 'viewer' }),
    ];
    await database.pool.query('update organizations set deleted_at = now() where id = $1', [deleted]);
    const only = await addOrganization(database);
    await database.pool.query(
      `insert into organization_members (id, org_id, user_id, role) values ($1, $2, $3, 'viewer')`,
      [newId('organization_member'), only, id],
    );
    const told = await organizationsOf(anonymous(), id);
    expect(new Set(told)).toEqual(new Set([home, been]));
    expect(told).toHaveLength(2);
  });

  it('is one of its own where nobody may know of it, or where it names an organization', async () => {
    expect(await organizationsOf(anonymous(), strangerId)).toEqual([null]);
    expect(await organizationsOf(anonymous(), 'usr_NONE')).toEqual([null]);
    expect(await organizationsOf(anonymous(), memberId, theirs.orgId)).toEqual([theirs.orgId]);
  });

  it('is of nobody who is signed in', async () => {
    expect((await stored(member(), refused, { orgId: null, resourceId: 'x' })).map((row) => row.org_id)).toEqual([
      null,
    ]);
  });

  it('has an id of its own in each organization, the same if it is written again', async () => {
    const { id } = await addUser(database);
    await addOrganization(database, { [id]: 'viewer' });
    await addOrganization(database, { [id]: 'viewer' });
    const caller = anonymous();
    let isFirst = true;
    // the first answer is lost: the records are written once more
    const lossy = new ActivityRecorder(
      Object.assign(Object.create(database.sql) as typeof database.sql, {
        read: (text: string, values: unknown[]) => database.sql.read(text, values),
        change: async (text: string, values: unknown[]) => {
          const rows = await database.sql.change(text, values);
          if (!isFirst) return rows;
          isFirst = false;
          throw Object.assign(new Error('Connection terminated'), { code: '08006' });
        },
      }),
      () => undefined,
    );
    lossy.record(caller, attempt(id), refused);
    await lossy.flush();
    await lossy.flush();
    expect(lossy.depth).toBe(0);
    const rows = await database.sql.read<{ id: string }>('select id from activity where trace_id = $1', [
      caller.request.traceId,
    ]);
    expect(rows.map((row) => row.id)).toEqual([
      expect.stringMatching(/^act_[0-9A-Z]{26}$/),
      expect.stringMatching(/^act_[0-9A-Z]{26}$/),
    ]);
    expect(new Set(rows.map((row) => row.id)).size).toBe(2);
    expect(new Set(rows.map((row) => row.id.slice(0, -16))).size).toBe(1);
  });
});

it('records are kept for ninety days, and end with their partition', async () => {
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  const partition = (name: string, from: number, until: number) =>
    `create table ${name} partition of activity for values from ('${daysAgo(from)}') to ('${daysAgo(until)}')`;
  await database.pool.query(`alter table activity detach partition activity_first;
    ${partition('ended_long_ago', 95, 91)}; ${partition('ended_lately', 91, 89)}`);
  for (const text of recorder.retention) await database.pool.query(text);
  const { rows } = await database.pool.query(
    `select to_regclass('ended_long_ago') is null as "areGone", to_regclass('ended_lately') is null as "areYoungGone"`,
  );
  expect(rows).toEqual([{ areGone: true, areYoungGone: false }]);
});
