import { afterAll, beforeAll, expect, it } from 'vitest';
import { demandOf, lockAllOf, lockUnreadOf } from '../../src/data/locks.ts';
import { EVENT_COLUMNS, eventRow, type StreamEvent, writeEvents } from '../../src/data/outbox.ts';
import { statement } from '../../src/data/writes.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import { addOrganization, type BareDatabase, openBareDatabase } from '../support/bare-database.ts';

let database: BareDatabase;
beforeAll(async () => {
  database = await openBareDatabase();
});
afterAll(() => database.close());

it.each([
  'environment_slots',
  'oauth_states',
  'identity_provider_domains',
  'sso_states',
  'sso_codes',
  'users',
] as const)('rows of %s are locked in the order of a key that they have', async (table) => {
  const { text, values } = lockAllOf(table, statement`true`, 'update');
  expect(await database.sql.read(text, values)).toEqual([]);
  const unread = lockUnreadOf(table, statement`true`, 'update');
  expect(await database.sql.read(unread.text, unread.values)).toEqual([{ count: '0' }]);
});

it('a row that must be there is locked before anything is written', () => {
  const demand = demandOf('users', { id: 'u' }, 'share', () => new Error('missing'));
  expect([demand.does, demand.text(3, null)]).toEqual(['lock', 'select 1 from users t where t.id = $3 for share']);
});

it('an event is read as it was written', async () => {
  const orgId = await addOrganization(database);
  const caller = systemCaller('a test');
  const event = eventRow(caller, {
    type: 'app.updated',
    orgId,
    workspaceId: 'ws_1',
    namespaceId: 'ns_1',
    environmentId: 'env_1',
    appId: 'app_1',
    recipientId: 'usr_1',
    resourceType: 'app',
    resourceId: 'app_2',
    data: { a: 1 },
  });
  const write = writeEvents([event]);
  await database.pool.query(write.text(1, null), [...write.values]);
  const text = `select ${EVENT_COLUMNS} from events e where e.trace_id = $1`;
  const read: StreamEvent[] = await database.sql.read(text, [caller.request.traceId]);
  expect(read).toEqual([
    {
      seq: expect.stringMatching(/^\d+$/),
      xid: expect.stringMatching(/^\d+$/),
      id: event.id,
      orgId,
      workspaceId: 'ws_1',
      namespaceId: 'ns_1',
      environmentId: 'env_1',
      appId: 'app_1',
      recipientId: 'usr_1',
      type: 'app.updated',
      actor: { principal_type: 'system', principal_id: null, username: null },
      resourceType: 'app',
      resourceId: 'app_2',
      data: { a: 1 },
      traceId: caller.request.traceId,
      timestamp: expect.any(Date),
    },
  ]);
});
