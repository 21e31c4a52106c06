import type { Access } from '../access/access.ts';
import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import type { CloseReason } from './close-reason.ts';

/** How often the access of silent streams is checked: a revocation ends them within a second. */
const LOOK_MS = 800;
/** Number of streams that are checked before the event loop continues. */
const CHUNK = 500;

/** Why a reader may no longer read; `null` while it may. Not a promise if everything is cached. */
export type Refusal = CloseReason | null | Promise<CloseReason | null>;

/** A stream that may have to end while it is silent. */
export interface Watched {
  refusal(): Refusal;
  found(reason: CloseReason | null): void;
}

interface Reader {
  /** The reader, its credential and the place. */
  key: string;
  actor: Actor;
  orgId: string;
  /** `null` for a stream of the organization. */
  workspaceId: string | null;
}

const keyOf = ({ actor: { principal }, orgId, workspaceId }: Omit<Reader, 'key'>): string =>
  `${principal.token ? principal.token.hash : principal.sessionId} ${principal.userId} ${orgId} ${workspaceId ?? ''}`;

interface WatchDeps {
  authentication: Authentication;
  access: Access;
}

/**
 * Watches all streams of this process with one timer. The data for the checks is read for all streams at once, in a few
 * statements.
 */
export class StreamWatch {
  readonly #deps: WatchDeps;
  readonly #streams = new Map<Watched, Reader>();
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /** @returns a function that ends the watch */
  add(stream: Watched, reader: Omit<Reader, 'key'>): () => void {
    this.#streams.set(stream, { ...reader, key: keyOf(reader) });
    this.#schedule(LOOK_MS);
    return () => {
      this.#streams.delete(stream);
      if (this.#streams.size > 0 || !this.#timer) return;
      clearTimeout(this.#timer);
      this.#timer = null;
    };
  }

  #schedule(inMs: number): void {
    // a running check schedules the next one itself
    if (this.#isLooking || this.#timer || this.#streams.size === 0) return;
    this.#timer = setTimeout(() => void this.#look(), inMs);
  }

  async #look(): Promise<void> {
    const started = performance.now();
    this.#timer = null;
    this.#isLooking = true;
    try {
      await this.#readAll([...this.#streams.values()]);
      await this.#judgeAll([...this.#streams]);
    } catch {
      // the database is unreachable: the next check decides
    }
    this.#isLooking = false;
    this.#schedule(Math.max(0, LOOK_MS - (performance.now() - started)));
  }

  async #readAll(readers: readonly Reader[]): Promise<void> {
    const { authentication, access } = this.#deps;
    await Promise.all([
      authentication.readAgain(readers.map(({ actor }) => actor.principal)),
      access.readAgain(
        readers.map(({ actor, orgId, workspaceId }) => ({ userId: actor.principal.userId, orgId, workspaceId })),
      ),
    ]);
  }

  async #judgeAll(streams: readonly (readonly [Watched, Reader])[]): Promise<void> {
    // all streams of one reader in one place get the same answer
    const known = new Map<string, Refusal>();
    for (let at = 0; at < streams.length; at += CHUNK) {
      for (const [stream, { key }] of streams.slice(at, at + CHUNK)) {
        const refusal = known.has(key) ? (known.get(key) ?? null) : stream.refusal();
        known.set(key, refusal);
        // entries that were dropped meanwhile are read one by one, and the database may be unreachable
        if (refusal instanceof Promise)
          refusal.then(
            (reason) => stream.found(reason),
            () => undefined,
          );
        else stream.found(refusal);
      }
      if (streams.length > CHUNK) await new Promise(setImmediate);
    }
  }
}
