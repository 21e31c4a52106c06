import { rateLimited } from '../core/errors.ts';

const MAX_PER_USER = 10;
const MAX_PER_PLACE = 200;
/** When a retry makes sense: streams end when their readers leave. */
const RETRY_AFTER_SECONDS = 5;

/**
 * How many event streams are open on this node: at most 10 per user and 200 per workspace (defaults §0.5), or
 * organization.
 */
export class StreamSlots {
  readonly #open = new Map<string, number>();

  /** Takes a slot. @returns a function that returns the slot @throws RATE_LIMIT_EXCEEDED */
  take(userId: string, placeId: string): () => void {
    const user = `user ${userId}`;
    const place = `place ${placeId}`;
    if (this.#of(user) >= MAX_PER_USER || this.#of(place) >= MAX_PER_PLACE)
      throw rateLimited(RETRY_AFTER_SECONDS, 'Too many event streams are open. Close one first.');
    this.#add(user, 1);
    this.#add(place, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#add(user, -1);
      this.#add(place, -1);
    };
  }

  #of(key: string): number {
    return this.#open.get(key) ?? 0;
  }

  #add(key: string, change: 1 | -1): void {
    const open = this.#of(key) + change;
    if (open > 0) this.#open.set(key, open);
    else this.#open.delete(key);
  }
}
