import type { RecordFeed } from '../data/record-feed.ts';
import { type AuditMessage, auditChannel } from '../live/audit-streams/audit-channel.ts';
import { AuditFanOut } from '../live/audit-streams/audit-fan-out.ts';
import { AuditSender } from '../live/audit-streams/audit-sender.ts';
import { AuditStreamService } from '../live/audit-streams/audit-stream.service.ts';
import { AuditStreamDeliveries } from '../live/audit-streams/audit-stream-deliveries.ts';
import { Audience } from '../live/events/audience.ts';
import { EventService } from '../live/events/event.service.ts';
import { EventLag } from '../live/events/event-lag.ts';
import type { EventTail } from '../live/events/event-tail.ts';
import { MissedEvents } from '../live/events/missed-events.ts';
import { PresenceService } from '../live/presence/presence.service.ts';
import { PresenceSnapshots } from '../live/presence/presence-snapshots.ts';
import { PresentStreams } from '../live/presence/present-streams.ts';
import { Disabling } from '../live/sending/disabling.ts';
import { SendEngine } from '../live/sending/send-engine.ts';
import { SendQueue } from '../live/sending/send-queue.ts';
import { SendSlots } from '../live/sending/send-slots.ts';
import { ServiceStatusService } from '../live/service-status/service-status.service.ts';
import { WebhookService } from '../live/webhooks/webhook.service.ts';
import { type WebhookMessage, webhookChannel } from '../live/webhooks/webhook-channel.ts';
import { WebhookDeliveries } from '../live/webhooks/webhook-deliveries.ts';
import { WebhookFanOut } from '../live/webhooks/webhook-fan-out.ts';
import { WebhookSender } from '../live/webhooks/webhook-sender.ts';
import type { RedisLink } from '../platform/redis/redis-link.ts';
import type { Ground } from './ground.ts';
import type { VaultGroup } from './vault.ts';

/** After this time without a word of a node, others send what it had taken: as with jobs. */
const LEASE_SECONDS = 20;

/** What the live group reads, and reaches. */
interface LiveSources {
  tail: EventTail;
  redis: RedisLink | null;
  activityFeed: RecordFeed;
}

/** The streams of events, who is present on them, webhooks and audit streams. */
export function createLive(ground: Ground, vaultGroup: VaultGroup, { tail, redis, activityFeed }: LiveSources) {
  const {
    config,
    deps,
    open: { authentication, onFault },
  } = ground;
  const { sql, access, replicaReads } = deps;
  const slots = new SendSlots();
  const webhooks = createWebhooks(ground, vaultGroup, slots);
  const auditStreams = createAuditStreams(ground, vaultGroup, slots, activityFeed);
  const presence = new PresenceService({ ...deps, snapshots: redis && new PresenceSnapshots(redis) });
  const eventLag = new EventLag(sql, ground.logger);
  const { keys, siblings, nodeId } = ground;
  const { jobQueue } = ground.closed;
  const { rootKeyUses } = vaultGroup.closed;
  return {
    open: {
      presence,
      serviceStatus: new ServiceStatusService({ sql, jobQueue, eventLag, keys, rootKeyUses, siblings, nodeId }),
      events: new EventService({
        config,
        tail,
        missed: new MissedEvents(sql),
        sql,
        access,
        authentication,
        presence: new PresentStreams({ sql, presence, onFault }),
        replicaReads,
        onFault,
      }),
      ...webhooks.open,
      ...auditStreams.open,
    },
    closed: { tail, eventLag, ...webhooks.closed, ...auditStreams.closed },
  };
}

function createWebhooks(
  { deps, open: { onFault }, closed: { outbound } }: Ground,
  { closed: { vault, credentials }, open: { secretReads } }: VaultGroup,
  slots: SendSlots,
) {
  const { sql, changes, access } = deps;
  const channel = webhookChannel;
  const disabling = new Disabling(changes, channel);
  const webhookEngine = new SendEngine({
    channel,
    sql,
    fanOut: new WebhookFanOut({ sql, changes, access, audience: new Audience(access, sql), disabling }),
    queue: new SendQueue<WebhookMessage>({ sql, changes, leaseSeconds: LEASE_SECONDS }, channel),
    sender: new WebhookSender({ sql, access, vault, credentials, outbound, disabling, onFault }),
    slots,
    leaseSeconds: LEASE_SECONDS,
    onFault,
  });
  const wake = () => webhookEngine.wake();
  return {
    open: {
      webhooks: new WebhookService({ ...deps, vault, credentials, secretReads, outbound, wake }),
      webhookDeliveries: new WebhookDeliveries({ ...deps, wake }),
    },
    closed: { webhookEngine },
  };
}

function createAuditStreams(
  { deps, open: { onFault }, closed: { outbound } }: Ground,
  { closed: { vault }, open: { secretReads } }: VaultGroup,
  slots: SendSlots,
  feed: RecordFeed,
) {
  const { sql, changes, access } = deps;
  const channel = auditChannel;
  const disabling = new Disabling(changes, channel);
  const auditSender = new AuditSender({ sql, changes, access, vault, outbound, feed, disabling, onFault });
  const auditEngine = new SendEngine({
    channel,
    sql,
    fanOut: new AuditFanOut({ sql, changes, access, feed, disabling }),
    queue: new SendQueue<AuditMessage>({ sql, changes, leaseSeconds: LEASE_SECONDS }, channel),
    sender: auditSender,
    slots,
    leaseSeconds: LEASE_SECONDS,
    onFault,
  });
  const wake = () => auditEngine.wake();
  return {
    open: {
      auditStreams: new AuditStreamService({ ...deps, vault, secretReads, outbound, wake }),
      auditStreamDeliveries: new AuditStreamDeliveries({ ...deps, wake }),
    },
    closed: { auditEngine, auditSender },
  };
}
