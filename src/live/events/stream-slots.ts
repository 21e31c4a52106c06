import type { Config } from '../../config.ts';
import { rateLimited } from '../../kernel/errors.ts';

/** When a retry makes sense: streams end when their readers leave. */
const RETRY_AFTER_SECONDS = 5;

/** Whose slot a stream takes. */
interface Holder {
  /** For a token, the user whose rights it has. */
  userId: string;
  /** The workspace, or the organization itself. `null`: the stream is of the user's own events. */
  placeId: string | null;
  /** What the stream is sent through. Several streams of one connection hold one slot together. */
  connection: object;
}

/** The connections that hold a slot of one kind, with the number of their streams. */
class ConnectionSlots {
  readonly #max: number;
  readonly #of = new Map<string, Map<object, number>>();

  constructor(max: number) {
    this.#max = max;
  }

  admits(id: string, connection: object): boolean {
    const open = this.#of.get(id);
    return !open || open.has(connection) || open.size < this.#max;
  }

  add(id: string, connection: object): void {
    const open = this.#of.get(id) ?? new Map<object, number>();
    this.#of.set(id, open.set(connection, (open.get(connection) ?? 0) + 1));
  }

  remove(id: string, connection: object): void {
    const open = this.#of.get(id)!;
    const left = open.get(connection)! - 1;
    if (left > 0) open.set(connection, left);
    else open.delete(connection);
    if (open.size === 0) this.#of.delete(id);
  }
}

/**
 * How many connections with event streams are open on this node, per user and per workspace or organization (defaults
 * §0.5). A WebSocket counts once, whatever number of streams it has there; over SSE each stream is a connection.
 */
export class StreamSlots {
  readonly #users: ConnectionSlots;
  readonly #places: ConnectionSlots;

  constructor(config: Pick<Config, 'maxStreamsPerUser' | 'maxStreamsPerWorkspace'>) {
    this.#users = new ConnectionSlots(config.maxStreamsPerUser);
    this.#places = new ConnectionSlots(config.maxStreamsPerWorkspace);
  }

  /** Takes a slot for a stream. @returns a function that returns the slot @throws RATE_LIMIT_EXCEEDED */
  take({ userId, placeId, connection }: Holder): () => void {
    if (!this.#users.admits(userId, connection)) throw refusal('Too many event streams of this user are open.');
    if (placeId !== null && !this.#places.admits(placeId, connection))
      throw refusal('Too many event streams of this workspace or organization are open.');
    this.#users.add(userId, connection);
    if (placeId !== null) this.#places.add(placeId, connection);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#users.remove(userId, connection);
      if (placeId !== null) this.#places.remove(placeId, connection);
    };
  }
}

const refusal = (message: string) => rateLimited(RETRY_AFTER_SECONDS, `${message} Close one first.`);
