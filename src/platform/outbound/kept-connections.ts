import type { ConnectionOfCall, ConnectionsOfOwner, HttpConnection } from './http-connection.ts';

/** How many connections wait for their next request at most. */
export interface KeptLimits {
  total: number;
  perOwner: number;
  /** Of an owner, to one origin. */
  perOrigin: number;
}

const LIMITS: KeptLimits = { total: 256, perOwner: 32, perOrigin: 16 };

/**
 * Connections that stand while no call uses them. A call takes one of its own organization, to its own origin, if it
 * leads to an address that was checked for this call: what the name of the target means by now is what is asked, and
 * nobody's request follows that of another organization. The longest unused are closed first.
 */
export class KeptConnections {
  readonly #limits: KeptLimits;
  /** In the order in which they were used last. */
  readonly #owners = new Map<HttpConnection, string>();
  readonly #ofOwners = new Map<string, Set<HttpConnection>>();
  #isClosed = false;

  constructor(limits: KeptLimits = LIMITS) {
    this.#limits = limits;
  }

  /** How many there are. */
  get size(): number {
    return this.#owners.size;
  }

  /** Those of an owner. */
  of(owner: string): ConnectionsOfOwner {
    return { take: (call) => this.#take(owner, call), keep: (connection) => this.#keep(owner, connection) };
  }

  /** Closes them all, and what would be kept from now on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const kept = [...this.#owners.keys()];
    for (const connection of kept) this.#forget(connection);
    await Promise.all(kept.map((connection) => connection.close()));
  }

  /** The one that was used last of those that lead to where a call goes. */
  #take(owner: string, call: ConnectionOfCall): HttpConnection | undefined {
    const { url, addresses } = call;
    const fits = ({ origin, address }: HttpConnection) =>
      origin === url.origin && address !== undefined && addresses.includes(address);
    const found = [...(this.#ofOwners.get(owner) ?? [])].findLast(fits);
    if (!found) return undefined;
    this.#forget(found);
    found.use(call);
    return found;
  }

  async #keep(owner: string, connection: HttpConnection): Promise<void> {
    const { total, perOwner, perOrigin } = this.#limits;
    const own = this.#ofOwners.get(owner) ?? new Set<HttpConnection>();
    own.add(connection);
    this.#ofOwners.set(owner, own);
    this.#owners.set(connection, owner);
    connection.whenClosed(() => void this.#end(connection));
    const alike = [...own].filter(({ origin }) => origin === connection.origin);
    if (this.#isClosed) await this.#end(connection);
    else if (alike.length > perOrigin) await this.#end(alike[0]!);
    else if (own.size > perOwner) await this.#end(firstOf(own));
    else if (this.#owners.size > total) await this.#end(firstOf(this.#owners.keys()));
  }

  async #end(connection: HttpConnection): Promise<void> {
    this.#forget(connection);
    await connection.close();
  }

  #forget(connection: HttpConnection): void {
    const owner = this.#owners.get(connection);
    if (owner === undefined) return;
    this.#owners.delete(connection);
    const own = this.#ofOwners.get(owner)!;
    own.delete(connection);
    if (own.size === 0) this.#ofOwners.delete(owner);
  }
}

const firstOf = <Value>(values: Iterable<Value>): Value => {
  const [first] = values;
  return first!;
};
