import { randomUUID } from 'node:crypto';
import { atMostEvery } from '../../platform/at-most-every.ts';
import type { RedisLink } from '../../platform/redis/redis-link.ts';

const CHANNEL = 'events';
/** A hundred a second at most, sent by a node, and heard by it of all others together. */
const PAUSE_MS = 10;

/**
 * Tells other nodes that there are new events, so that they read now and not at their next poll. What it says is only
 * that: a lost message costs the time until the poll.
 */
export class WakeUps {
  /** Called after a commit with events. */
  readonly send: () => void;

  constructor(link: RedisLink, tail: { nudge(): void }) {
    const node = randomUUID();
    this.send = atMostEvery(PAUSE_MS, () => link.publish(CHANNEL, node));
    const read = atMostEvery(PAUSE_MS, () => tail.nudge());
    link.listen(CHANNEL, (sender) => {
      if (sender !== node) read();
    });
  }
}
