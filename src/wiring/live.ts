import { EventService } from '../live/events/event.service.ts';
import type { EventTail } from '../live/events/event-tail.ts';
import { MissedEvents } from '../live/events/missed-events.ts';
import { PresenceService } from '../live/presence/presence.service.ts';
import { PresenceSnapshots } from '../live/presence/presence-snapshots.ts';
import { PresentStreams } from '../live/presence/present-streams.ts';
import type { RedisLink } from '../platform/redis/redis-link.ts';
import type { Ground } from './ground.ts';

/** The streams of events, and who is present on them. */
export function createLive(
  { config, deps, open: { authentication, onFault } }: Ground,
  tail: EventTail,
  redis: RedisLink | null,
) {
  const { sql, access } = deps;
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
    },
    closed: { tail },
  };
}
