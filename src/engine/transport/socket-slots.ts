/** Maximum number of unauthenticated sockets per address. They have three seconds to authenticate. */
const MAX_PER_ADDRESS = 200;

/** Counts the open sockets on this node: per user, and per address until they are authenticated. */
export class SocketSlots {
  readonly #maxPerUser: number;
  readonly #open = new Map<string, number>();

  constructor(maxPerUser: number) {
    this.#maxPerUser = maxPerUser;
  }

  /** Takes a slot for a new socket. @returns a function that returns the slot, `null` when there is none */
  ofAddress(ip: string): (() => void) | null {
    return this.#take(`address ${ip}`, MAX_PER_ADDRESS);
  }

  /** Takes a slot for an authenticated socket. @returns a function that returns the slot, `null` when there is none */
  ofUser(userId: string): (() => void) | null {
    return this.#take(`user ${userId}`, this.#maxPerUser);
  }

  #take(key: string, max: number): (() => void) | null {
    const open = this.#open.get(key) ?? 0;
    if (open >= max) return null;
    this.#open.set(key, open + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const left = this.#open.get(key)! - 1;
      if (left > 0) this.#open.set(key, left);
      else this.#open.delete(key);
    };
  }
}
