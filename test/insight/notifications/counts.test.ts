import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { type Counts, countsOf, listOf, mute, type Shown } from './told.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** A notification as a list in memory keeps it. */
interface Kept {
  id: string;
  category: string;
  status: 'unread' | 'read' | 'archived';
  wasRead: boolean;
  isGone: boolean;
  /** Told of a role that is not theirs any more. */
  isResolved: boolean;
  tellsRole: boolean;
}

/** Somebody, with what a naive reader would say of their notifications. */
interface Model {
  who: Person;
  kept: Kept[];
  muted: readonly string[];
  role: 'viewer' | 'member';
}

const moves: { [name: string]: (kept: Kept) => void } = {
  markNotificationRead: (kept) => {
    if (kept.status === 'unread') kept.status = 'read';
    kept.wasRead = true;
  },
  markNotificationUnread: (kept) => {
    if (kept.status === 'read') kept.status = 'unread';
    kept.wasRead = false;
  },
  archiveNotification: (kept) => {
    kept.status = 'archived';
  },
  unarchiveNotification: (kept) => {
    if (kept.status === 'archived') kept.status = kept.wasRead ? 'read' : 'unread';
  },
};

const user = fc.nat({ max: 1 });
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant('make' as const), user, category: fc.constantFrom('member', 'token') }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constant('move' as const),
      user,
      of: user,
      at: fc.nat({ max: 9 }),
      move: fc.constantFrom(...Object.keys(moves)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('readAll' as const), user }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('expire' as const), user, at: fc.nat({ max: 9 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant('mute' as const),
      user,
      muted: fc.subarray(['member', 'token', 'secret']),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const unreadOf = ({ notification_id, category, source_event }: Shown): Kept => ({
  id: notification_id!,
  category: category!,
  status: 'unread',
  wasRead: false,
  isGone: false,
  isResolved: false,
  tellsRole: source_event === 'organization_member.updated',
});

const visible = ({ kept }: Model): Kept[] => kept.filter(({ isGone }) => !isGone);

function expectedOf(model: Model): Counts {
  const by_category: { [category: string]: number } = {};
  const unread = visible(model).filter(({ status, isResolved }) => status === 'unread' && !isResolved);
  for (const { category } of unread) by_category[category] = (by_category[category] ?? 0) + 1;
  return { unread_count: unread.length, by_category };
}

/** Somebody causes a notification. The model gets it unless it is muted. */
async function make(owner: Person, model: Model, category: string): Promise<void> {
  const { who } = model;
  if (category === 'member') {
    model.role = model.role === 'viewer' ? 'member' : 'viewer';
    const url = `/v1/orgs/${owner.orgId}/members/${who.userId}`;
    expect((await owner.call('PATCH', url, { role: model.role })).status).toBe(200);
    for (const one of model.kept) if (one.tellsRole && !one.isGone) one.isResolved = true;
  } else {
    const { id } = await issueToken(app, { ...who, orgId: owner.orgId });
    expect((await owner.call('DELETE', `/v1/orgs/${owner.orgId}/api-tokens/admin/${id}`)).status).toBe(204);
  }
  if (model.muted.includes(category)) return;
  const [newest] = (await listOf(who, '?limit=1')).notifications;
  expect(newest!.category).toBe(category);
  expect(model.kept.map(({ id }) => id)).not.toContain(newest!.notification_id);
  model.kept.unshift(unreadOf(newest!));
}

async function run(owner: Person, models: readonly Model[], what: Step): Promise<void> {
  const model = models[what.user]!;
  const { who, kept } = model;
  if (what.does === 'make') return make(owner, model, what.category);
  if (what.does === 'readAll') {
    await who.call('POST', '/v1/notifications/read-all');
    for (const one of visible(model)) if (one.status === 'unread' && !one.isResolved) moves.markNotificationRead!(one);
  } else if (what.does === 'mute') {
    model.muted = what.muted;
    expect((await mute(who, what.muted)).status).toBe(200);
  } else if (what.does === 'expire') {
    const one = kept[what.at];
    if (!one) return;
    await app.database.pool.query('update notifications set expires_at = now() where id = $1', [one.id]);
    one.isGone = true;
  } else {
    const one = models[what.of]!.kept[what.at];
    if (!one) return;
    const { errors } = await who.ask(`mutation ($id: ID!) { ${what.move}(id: $id) { id } }`, { id: one.id });
    const isTheirs = what.of === what.user && !one.isGone;
    expect(errors?.[0]?.extensions.code).toBe(isTheirs ? undefined : 'RESOURCE_NOT_FOUND');
    if (isTheirs) moves[what.move]!(one);
  }
}

async function agree(model: Model): Promise<void> {
  const expected = expectedOf(model);
  const { who } = model;
  expect(await countsOf(who)).toEqual(expected);
  const idsAt = async (query: string) => {
    const { notifications, total, unread_count } = await listOf(who, `?limit=100${query}`);
    expect([total, unread_count]).toEqual([notifications.length, expected.unread_count]);
    return notifications.map(({ notification_id }) => notification_id);
  };
  const ids = (wanted: (kept: Kept) => boolean) =>
    visible(model)
      .filter(wanted)
      .map(({ id }) => id);
  expect(await idsAt('')).toEqual(ids((one) => one.status !== 'archived' && !one.isResolved));
  for (const status of ['unread', 'read', 'archived'])
    expect(await idsAt(`&status=${status}`)).toEqual(
      ids((one) => one.status === status && (status === 'archived' || !one.isResolved)),
    );
  for (const category of ['member', 'token'])
    expect(await idsAt(`&status=unread&category=${category}`)).toEqual(
      ids((one) => one.status === 'unread' && !one.isResolved && one.category === category),
    );
}

test('counts and lists agree with a naive reader, whatever several users do', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const owner = await register(app, { name: 'owner' });
      const models: Model[] = [];
      for (let n = 0; n < 2; n++) {
        const who = await colleague(app, owner, 'viewer');
        const { notifications } = await listOf(who);
        const kept = notifications.map(unreadOf);
        models.push({ who, kept, muted: [], role: 'viewer' });
      }
      for (const what of steps) {
        await run(owner, models, what);
        expect(await countsOf(models[what.user]!.who)).toEqual(expectedOf(models[what.user]!));
      }
      for (const model of models) await agree(model);
    }),
    { numRuns: 12 },
  );
});
