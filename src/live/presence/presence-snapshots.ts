import { setTimeout as delay } from 'node:timers/promises';
import type { StreamEvent } from '../../data/outbox.ts';
import type { RedisLink } from '../../platform/redis/redis-link.ts';
import type { PresentUser } from './present-user.ts';

/** All nodes see an event within a poll of each other. */
const KEPT_MS = 30_000;
/** Who reads the database for all has this time; then others read by themselves. */
const READING_MS = 100;
const LOOK_MS = 5;

/** The snapshot; `reading` while a node reads it; nothing to the node that is to read it. */
const CLAIM = `local known = redis.call('get', KEYS[1])
if known then return known end
redis.call('set', KEYS[1], 'reading', 'px', ARGV[1])
return false`;

/**
 * Who was present after an event, read from the database by one node for all. It is a copy: a node that does not get it
 * in time reads by itself, with the same result.
 */
export class PresenceSnapshots {
  readonly #link: RedisLink;
  readonly #claim: ReturnType<RedisLink['script']>;

  constructor(link: RedisLink) {
    this.#link = link;
    this.#claim = link.script('platformClaim', CLAIM);
  }

  /** @param read reads who is present now, which is after the event */
  async after(
    { xid, seq }: Pick<StreamEvent, 'xid' | 'seq'>,
    read: () => Promise<PresentUser[]>,
  ): Promise<PresentUser[]> {
    const key = this.#link.key('presence', `${xid}.${seq}`);
    const known = await this.#known(key);
    if (known !== 'mine') return known ?? read();
    const users = await read();
    const stored = this.#link.ask((client) => client.set(key, JSON.stringify(users), 'PX', KEPT_MS));
    stored.catch(() => undefined); // the others read by themselves
    return users;
  }

  /** The snapshot; `mine` if this node is to read it; `null` if it does not come. */
  async #known(key: string): Promise<PresentUser[] | 'mine' | null> {
    const until = performance.now() + READING_MS;
    try {
      do {
        const text = await this.#claim([key], [READING_MS]);
        if (typeof text !== 'string') return 'mine';
        if (text !== 'reading') return usersOf(text);
        await delay(LOOK_MS);
      } while (performance.now() < until);
    } catch {
      return null; // the link has told
    }
    return null;
  }
}

const usersOf = (text: string): PresentUser[] =>
  (JSON.parse(text) as (Omit<PresentUser, 'joinedAt'> & { joinedAt: string })[]).map((user) => ({
    ...user,
    joinedAt: new Date(user.joinedAt),
  }));
