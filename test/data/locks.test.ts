import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Tx } from '../../src/data/tx.ts';
import { statement } from '../../src/data/writes.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { changesOver } from '../support/changes.ts';
import { type Person, register } from '../support/person.ts';
import { fromOutside } from '../support/single-connection.ts';

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
});
afterAll(() => app.close());

const caller = systemCaller('a test');
const missing = () => new Error('it is not there');

/** Runs work as the service does in tests, or in the field. */
function run<T>(work: (tx: Tx) => Promise<T>, assertsLockOrder = true): Promise<T> {
  return changesOver(app, { assertsLockOrder }).run(caller, work);
}

test('a table that the order does not list comes after those that it does', async () => {
  const inOrder = async (tx: Tx) => {
    await tx.lock('notifications', { id: 'none' }, 'share');
    await tx.lock('sessions', { id: 'none' }, 'share');
  };
  await run(inOrder);
  const after = async (tx: Tx) => {
    await inOrder(tx);
    await tx.lock('notifications', { id: 'other' }, 'share');
  };
  await expect(run(after)).rejects.toThrow('A change locks notifications after sessions');
});

test('a lock out of order fails the change, each way of taking it, where it is asserted', async () => {
  const { orgId, workspaceId } = owner;
  const ways: ((tx: Tx) => unknown)[] = [
    (tx) => tx.lock('organizations', { id: orgId }, 'share'),
    (tx) => tx.lockAll('organizations', statement`t.id = ${orgId}`, 'share'),
    async (tx) => tx.demand('organizations', { id: orgId }, 'share', missing),
  ];
  for (const way of ways) {
    const work = async (tx: Tx) => {
      await tx.lock('workspaces', { id: workspaceId }, 'no key update');
      await way(tx);
    };
    await expect(run(work)).rejects.toThrow('A change locks organizations after workspaces');
    await run(work, false);
  }
});

test('in order all is well, and a row that is locked already may be locked again', async () => {
  const { orgId, workspaceId, userId } = owner;
  const locked = await run(async (tx) => {
    await tx.lock('organizations', { id: orgId }, 'share', missing);
    tx.demand('workspaces', { id: workspaceId }, 'key share', missing);
    const again = await tx.lock('organizations', { id: orgId, deletedAt: null }, 'share', missing);
    const user = await tx.lock('users', { id: userId }, 'key share', missing);
    return [again.id, user.id];
  });
  expect(locked).toEqual([orgId, userId]);
});

test('several rows of a table are locked in the order of their keys, and a missing one is `null`', async () => {
  const { orgId } = owner;
  const members = await run((tx) => tx.lockAll('organization_members', statement`t.org_id = ${orgId}`, 'update'));
  expect(members.map((member) => member.userId)).toEqual([owner.userId]);
  expect(await run((tx) => tx.lock('apps', { id: 'app_NONE' }, 'update'))).toBeNull();
  await expect(run((tx) => tx.lock('apps', { id: 'app_NONE' }, 'update', missing))).rejects.toThrow(missing());
});

test('what is locked is locked: another change waits for it', async () => {
  const { rows } = await run(async (tx) => {
    await tx.lock('workspaces', { id: owner.workspaceId }, 'no key update', missing);
    const others = 'select id from workspaces where id = $1 for share skip locked';
    return fromOutside(() => app.database.pool.query(others, [owner.workspaceId]));
  });
  expect(rows).toEqual([]);
});

// the canaries of root keys are locked outside of changes too: when the service starts, and when secrets are wrapped
// anew; artifacts whose language changes are locked in the order of their ids, by one node at a time; notifications
// that a change ends are its last rows, and are locked in the order of their ids; artifacts whose vectors are forgotten
// are locked in the order of their ids, in a statement of their own; the position of a webhook or an audit stream is
// moved by who has its row, which is one; connections of presence are locked in the order of their keys, by changes
// that lock no other row
const OUTSIDE_OF_CHANGES = [
  'platform/keys/root-keys.ts',
  'knowledge/indexing/search-languages.ts',
  'knowledge/indexing/vectors/embedding-changes.ts',
  'insight/notifications/endings.ts',
  'live/webhooks/webhook-fan-out.ts',
  'live/audit-streams/audit-fan-out.ts',
  'live/presence/present-place.ts',
];

test('no source locks rows by itself, but for those that skip what others have locked', () => {
  const raw = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter(
      (file) =>
        file.endsWith('.ts') &&
        !file.startsWith('generated/') &&
        !file.startsWith('data/') &&
        !OUTSIDE_OF_CHANGES.includes(file),
    )
    .flatMap((file) =>
      readFileSync(`src/${file}`, 'utf8')
        .split('\n')
        .filter((line) => /\bfor (no key update|update|share|key share)\b/.test(line) && !/skip locked/.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
  expect(raw).toEqual([]);
});
