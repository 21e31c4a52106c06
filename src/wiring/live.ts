import { Audience } from '../live/events/audience.ts';
import { EventService } from '../live/events/event.service.ts';
import type { EventTail } from '../live/events/event-tail.ts';
import { MissedEvents } from '../live/events/missed-events.ts';
import { PresenceService } from '../live/presence/presence.service.ts';
import { PresenceSnapshots } from '../live/presence/presence-snapshots.ts';
import { PresentStreams } from '../live/presence/present-streams.ts';
import { WebhookService } from '../live/webhooks/webhook.service.ts';
import { WebhookDeliveries } from '../live/webhooks/webhook-deliveries.ts';
import { WebhookDisabling } from '../live/webhooks/webhook-disabling.ts';
import { WebhookEngine } from '../live/webhooks/webhook-engine.ts';
import { WebhookFanOut } from '../live/webhooks/webhook-fan-out.ts';
import { WebhookQueue } from '../live/webhooks/webhook-queue.ts';
import { WebhookSender } from '../live/webhooks/webhook-sender.ts';
import type { RedisLink } from '../platform/redis/redis-link.ts';
import type { Ground } from './ground.ts';
import type { VaultGroup } from './vault.ts';

/** After this time without a word of a node, others send what it had taken: as with jobs. */
const LEASE_SECONDS = 20;

/** The streams of events, who is present on them, and webhooks. */
export function createLive(ground: Ground, vaultGroup: VaultGroup, tail: EventTail, redis: RedisLink | null) {
  const {
    config,
    deps,
    open: { authentication, onFault },
  } = ground;
  const { sql, access } = deps;
  const webhooks = createWebhooks(ground, vaultGroup);
  const presence = new PresenceService({ ...deps, snapshots: redis && new PresenceSnapshots(redis) });
  return {
    open: {
      presence,
      events: new EventService({
        config,
        tail,
        missed: new MissedEvents(sql),
        sql,
        access,
        authentication,
        presence: new PresentStreams({ sql, presence, onFault }),
        onFault,
      }),
      ...webhooks.open,
    },
    closed: { tail, ...webhooks.closed },
  };
}

function createWebhooks(
  { deps, open: { onFault }, closed: { outbound } }: Ground,
  { closed: { vault, credentials }, open: { secretReads } }: VaultGroup,
) {
  const { sql, changes, access } = deps;
  const disabling = new WebhookDisabling(changes);
  const webhookEngine = new WebhookEngine({
    sql,
    fanOut: new WebhookFanOut({ sql, changes, access, audience: new Audience(access, sql), disabling }),
    queue: new WebhookQueue({ sql, changes, leaseSeconds: LEASE_SECONDS }),
    sender: new WebhookSender({ sql, access, vault, credentials, outbound, disabling, onFault }),
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
