import type { Access } from '../../access/access.ts';
import type { Authentication } from '../../access/authentication.ts';
import { KnownFacts } from '../../access/known-facts.ts';
import type { Caller } from '../../kernel/caller.ts';
import { TextArray } from '../../platform/postgres/text-array.ts';
import type { CloseReason } from './close-reason.ts';

/** How often the access of silent streams is checked: a revocation ends them within a second. */
const LOOK_MS = 800;
/** Number of readers that are checked before the event loop continues. */
const CHUNK = 500;

/** Why a reader may no longer read; `null` while it may. Not a promise if everything is cached. */
export type Refusal = CloseReason | null | Promise<CloseReason | null>;

/** A stream that may have to end while it is silent. */
export interface Watched {
  refusal(): Refusal;
  found(reason: CloseReason | null): void;
}

interface StreamReader {
  caller: Caller;
  orgId: string;
  /** `null` for a stream of the organization. */
  workspaceId: string | null;
}

/** The streams of one reader in one place: they get the same answer. */
interface WatchedGroup {
  reader: StreamReader;
  streams: Set<Watched>;
  /** What was true of the reader when it was last judged; `null` if it must be judged again. */
  facts: string | null;
  isRefused: boolean;
  /** Number of judgements so far. An answer that arrives after that of a later one says nothing. */
  turn: number;
}

/** What is asked about all groups, again and again while they stay the same. */
interface Question {
  groups: readonly WatchedGroup[];
  facts: KnownFacts;
  sessionIds: readonly string[];
  writtenSessionIds: TextArray;
  /** Of API tokens. */
  hashes: readonly string[];
}

function questionAbout(groups: readonly WatchedGroup[]): Question {
  const hashes = new Set<string>();
  const sessions = new Set<string>();
  for (const { reader } of groups) {
    const { principal } = reader.caller;
    if (principal.token) hashes.add(principal.token.hash);
    else sessions.add(principal.sessionId);
  }
  const sessionIds = [...sessions];
  return {
    groups,
    facts: new KnownFacts(
      groups.map(({ reader: { caller, orgId, workspaceId }, facts }) => ({
        userId: caller.principal.userId,
        orgId,
        workspaceId,
        facts,
      })),
    ),
    sessionIds,
    writtenSessionIds: new TextArray(sessionIds),
    hashes: [...hashes],
  };
}

/** Who reads, by which credential, and where. */
const keyOf = ({ caller: { principal }, orgId, workspaceId }: StreamReader): string =>
  `${principal.token ? principal.token.hash : principal.sessionId} ${principal.userId} ${orgId} ${workspaceId ?? ''}`;

interface WatchDeps {
  authentication: Authentication;
  access: Access;
}

/**
 * Looks after all streams of this process by one timer: what has changed about their readers is found for all at once,
 * in a few statements.
 */
export class StreamWatch {
  readonly #deps: WatchDeps;
  readonly #groups = new Map<string, WatchedGroup>();
  /** `null` after groups came or went, or must be judged again. */
  #question: Question | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /** @returns a function that ends the watch */
  add(stream: Watched, reader: StreamReader): () => void {
    const key = keyOf(reader);
    const group = this.#groups.get(key) ?? this.#begin(key, reader);
    group.streams.add(stream);
    this.#schedule(LOOK_MS);
    return () => {
      group.streams.delete(stream);
      if (group.streams.size === 0 && this.#groups.get(key) === group) {
        this.#groups.delete(key);
        this.#question = null;
      }
      if (this.#groups.size > 0 || !this.#timer) return;
      clearTimeout(this.#timer);
      this.#timer = null;
    };
  }

  #begin(key: string, reader: StreamReader): WatchedGroup {
    const group: WatchedGroup = { reader, streams: new Set(), facts: null, isRefused: false, turn: 0 };
    this.#groups.set(key, group);
    this.#question = null;
    return group;
  }

  #schedule(inMs: number): void {
    // a running check schedules the next one itself
    if (this.#isLooking || this.#timer || this.#groups.size === 0) return;
    this.#timer = setTimeout(() => void this.#look(), inMs);
  }

  async #look(): Promise<void> {
    const started = performance.now();
    this.#timer = null;
    this.#isLooking = true;
    try {
      this.#question ??= questionAbout([...this.#groups.values()]);
      await this.#judgeAll(await this.#suspects(this.#question));
    } catch {
      // the database is unreachable: the next check decides
    }
    this.#isLooking = false;
    this.#schedule(Math.max(0, LOOK_MS - (performance.now() - started)));
  }

  /**
   * The groups about whose readers something has changed since they were judged. The database compares: reading the
   * facts of thousands of readers each time, nearly all unchanged, would cost ten times as much here.
   */
  async #suspects({ groups, facts, sessionIds, writtenSessionIds, hashes }: Question): Promise<WatchedGroup[]> {
    const { authentication, access } = this.#deps;
    const [ended, changed] = await Promise.all([
      authentication.ended(sessionIds, writtenSessionIds),
      access.facts.changesOf(facts),
      authentication.readTokensAgain(hashes),
    ]);
    for (const [at, now] of changed) {
      groups[at]!.facts = now;
      facts.learn(at, now);
    }
    return groups.filter(({ reader, isRefused }, at) => {
      const { principal } = reader.caller;
      return isRefused || changed.has(at) || principal.token !== null || ended.has(principal.sessionId);
    });
  }

  async #judgeAll(groups: readonly WatchedGroup[]): Promise<void> {
    for (let at = 0; at < groups.length; at += CHUNK) {
      for (const group of groups.slice(at, at + CHUNK)) {
        const [any] = group.streams;
        const turn = ++group.turn;
        const refusal = any?.refusal() ?? null;
        // entries that were dropped meanwhile are read one by one, and the database may be unreachable
        if (refusal instanceof Promise)
          refusal.then(
            (reason) => {
              if (turn === group.turn) tell(group, reason);
            },
            () => {
              group.facts = null; // the next check decides
              this.#question = null;
            },
          );
        else tell(group, refusal);
      }
      if (groups.length > CHUNK) await new Promise(setImmediate);
    }
  }
}

/** Streams that may continue are not touched: a check costs nothing per stream while nobody is refused. */
function tell(group: WatchedGroup, reason: CloseReason | null): void {
  if (!reason && !group.isRefused) return;
  group.isRefused = reason !== null;
  for (const stream of group.streams) stream.found(reason);
}
