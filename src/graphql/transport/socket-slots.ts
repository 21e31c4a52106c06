/** Sockets of one address that have not said yet whose they are; they have three seconds for it. */
const MAX_PER_ADDRESS = 200;

/** How many sockets are open on this node: of each user, and of each address while nobody knows whose they are. */
export class SocketSlots {
  readonly #maxPerUser: number;
  readonly #open = new Map<string, number>();

  constructor(maxPerUser: number) {
    this.#maxPerUser = maxPerUser;
  }

  /** Takes a slot for a socket that has just been opened. @returns what gives it back, `null` when there is none */
  ofAddress(ip: string): (() => void) | null {
    return this.#take(`address ${ip}`, MAX_PER_ADDRESS);
  }

  /** Takes a slot for a socket that has said whose it is. @returns what gives it back, `null` when there is none */
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
