import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { every } from '../every.ts';
import type { Database } from '../postgres/database.ts';

/** How often a node says that it runs: one row is written by its key. */
const BEAT_MS = 15_000;
/** How long a node tries to say that it leaves, and the pause between two tries. */
const LEAVE_WITHIN_MS = 6_000;
const LEAVE_PAUSE_MS = 2_000;
/** A node that was not heard for so long is away: two beats were late or lost. */
export const AWAY_SECONDS = 45;

// the address is the one by which the database sees the node: that of its connections
const BEAT = `insert into nodes (id, host_name, address, version, started_at, worker_count, running_worker_count,
    problem)
  values ($1, $2, host(inet_client_addr()), $3, $4, $5, $6, $7)
  on conflict (id) do update set last_seen_at = now(), address = excluded.address,
    worker_count = excluded.worker_count, running_worker_count = excluded.running_worker_count,
    problem = excluded.problem`;
const LEAVE = 'delete from nodes where id = $1';

interface HeartbeatDeps {
  /** Of this start of the node; all its workers have the same. */
  nodeId: string;
  pool: Pick<Database['pool'], 'query'>;
  version: string;
  workers: () => { running: number; of: number };
  /** Why the node takes no requests; `null` if it is ready. */
  problem: () => string | null;
  onFault: (error: unknown) => void;
  /** How long it tries to say that the node leaves: a test need not be quicker than a slow machine. */
  leaveWithinMs?: number;
}

/** Says to the other nodes, by a row of its own, that this node runs. */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  readonly #startedAt = new Date(performance.timeOrigin);

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  /** @returns a function that ends it and takes the row away */
  start(): () => Promise<void> {
    const end = every(BEAT_MS, () => this.#beat(), this.#deps.onFault, 0);
    return async () => {
      await end();
      await this.#leave();
    };
  }

  /** Tries again while the database is away: a row that stays looks like a node that was killed. */
  async #leave(): Promise<void> {
    const { nodeId, pool, onFault, leaveWithinMs = LEAVE_WITHIN_MS } = this.#deps;
    const lastTryAt = performance.now() + leaveWithinMs - LEAVE_PAUSE_MS;
    for (;;) {
      try {
        await pool.query(LEAVE, [nodeId]);
        return;
      } catch (error) {
        onFault(error);
      }
      if (performance.now() >= lastTryAt) return;
      await delay(LEAVE_PAUSE_MS);
    }
  }

  async #beat(): Promise<void> {
    const { nodeId, pool, version, workers, problem } = this.#deps;
    const { running, of } = workers();
    await pool.query(BEAT, [nodeId, hostname(), version, this.#startedAt, of, running, problem()]);
  }
}
