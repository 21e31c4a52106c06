import { ReplicaReads, targetOf } from '../data/replica-reads.ts';
import { Sql } from '../data/sql.ts';
import { NotificationPages } from '../insight/notifications/notification.pages.ts';
import { Notifier } from '../insight/notifications/notifier.ts';
import { UnsubscribeLinks } from '../insight/notifications/unsubscribe-links.ts';
import { apart } from '../kernel/spans.ts';
import { EventTail } from '../live/events/event-tail.ts';
import { WakeUps } from '../live/events/wake-ups.ts';
import { Seal } from '../platform/keys/seal.ts';
import { AccountMail } from '../platform/mail/account-mail.ts';
import type { Database } from '../platform/postgres/database.ts';
import { createDelivery } from './delivery.ts';
import { createGround, type ProcessDeps } from './ground.ts';
import { createIdentity } from './identity.ts';
import { createInsight } from './insight.ts';
import { createKnowledge } from './knowledge.ts';
import { createLive } from './live.ts';
import { createModels } from './models.ts';
import { createPipelines } from './pipelines.ts';
import { ownersInOrder, removalOrder } from './removal-order.ts';
import { createTenancy } from './tenancy.ts';
import { createTools } from './tools.ts';
import { createVault } from './vault.ts';

/**
 * Everything that is created once per process: `open` is what resolvers may use, `services` is that and what the
 * process runs and stops.
 */
export type Wired = ReturnType<typeof createServices>;
export type Runtime = Wired['services'];
type Open = Wired['open'];

declare module '../graphql/context.ts' {
  interface Services extends Open {}
}

function replicaReadsOf({ replicas, pool }: Database, sql: Sql, secret: Buffer): ReplicaReads | null {
  return replicas && new ReplicaReads(replicas, targetOf(pool, sql), secret);
}

/** Makes the services of all groups, from the lowest to the highest. */
export function createServices(process: ProcessDeps) {
  const { database, config, mailer, appSecret, publicUrl, onFault, redis } = process;
  const sql = new Sql(database.pool);
  const replicaReads = replicaReadsOf(database, sql, appSecret);
  const tail = new EventTail(sql, config.eventPollMs, onFault);
  const wakeUps = redis && new WakeUps(redis, tail);
  const mail = new AccountMail({ mailer, seal: new Seal(appSecret, 'mail'), publicUrl });
  const pages = new NotificationPages(config, publicUrl);
  const former = config.formerAppSecrets.map((text) => new Seal(Buffer.from(text), 'unsubscribe'));
  const unsubscribeLinks = new UnsubscribeLinks([new Seal(appSecret, 'unsubscribe'), ...former], publicUrl);
  const ground = createGround(process, {
    sql,
    replicaReads,
    mail,
    notify: new Notifier(mail, pages, unsubscribeLinks).notify,
    onCommit: () =>
      apart(() => {
        tail.nudge();
        live.closed.webhookEngine.committed();
        wakeUps?.send();
      }),
  });
  const tenancy = createTenancy(ground);
  const vault = createVault(ground);
  const identity = createIdentity(ground, tenancy, vault);
  const models = createModels(ground, vault);
  const knowledge = createKnowledge(ground, tenancy, models);
  const tools = createTools(ground, vault, knowledge);
  const delivery = createDelivery(ground, vault);
  const pipelines = createPipelines(ground, vault);
  const insight = createInsight(ground, { mail, pages, unsubscribeLinks });
  const live = createLive(ground, vault, { tail, redis, activityFeed: insight.closed.activityFeed });
  const groups = [
    ground,
    tenancy,
    vault,
    identity,
    tools,
    knowledge,
    models,
    delivery,
    pipelines,
    insight,
    live,
  ] as const;
  refuseSameNames(groups.flatMap(({ open, closed }) => [open, closed]));
  const open = allOf(groups, 'open');
  const services = { ...open, ...allOf(groups, 'closed') };
  ground.removals.declare(ownersInOrder(services, removalOrder));
  return { open, services, replicaReads };
}

interface Group {
  open: object;
  closed: object;
}

type AllOf<Groups, Part extends keyof Group> = Groups extends readonly [infer First extends Group, ...infer Others]
  ? First[Part] & AllOf<Others, Part>
  : unknown;

/** The services of all groups in one object. */
const allOf = <Groups extends readonly Group[], Part extends keyof Group>(groups: Groups, part: Part) =>
  Object.assign({}, ...groups.map((group) => group[part])) as AllOf<Groups, Part>;

/** @throws Error when two have a service of one name: the later one would hide the other */
function refuseSameNames(parts: readonly object[]): void {
  const names = parts.flatMap((part) => Object.keys(part));
  const same = names.find((name, at) => names.indexOf(name) !== at);
  if (same !== undefined) throw new Error(`Two groups have a service '${same}'.`);
}
