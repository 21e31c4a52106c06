import type { Access } from '../access/access.ts';
import type { Authentication } from '../access/authentication.ts';
import type { Actor } from '../access/caller.ts';
import type { CloseReason } from './close-reason.ts';

/** How often silent streams are asked whether their readers may still read: a revocation ends them within a second. */
const LOOK_MS = 800;
/** Streams that are judged before anything else gets its turn. */
const CHUNK = 500;

/** Why a reader may read no more; `null` while it may. At once where all of it is known. */
export type Refusal = CloseReason | null | Promise<CloseReason | null>;

/** A stream that may have to end while nothing happens on it. */
export interface Watched {
  refusal(): Refusal;
  found(reason: CloseReason | null): void;
}

interface Reader {
  /** Who reads, by which credential, and where. */
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
 * Looks after all streams of this process by one timer: what decides about them is read for all at once, in a few
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

  /** @returns what ends the watch */
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
    // a look that is under way sets the next one itself
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
      // the database is away: the next look decides
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
    // the streams of one reader in one place have one answer
    const known = new Map<string, Refusal>();
    for (let at = 0; at < streams.length; at += CHUNK) {
      for (const [stream, { key }] of streams.slice(at, at + CHUNK)) {
        const refusal = known.has(key) ? (known.get(key) ?? null) : stream.refusal();
        known.set(key, refusal);
        // what was dropped meanwhile is read on its own, and the database may be away
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
