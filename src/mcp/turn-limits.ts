import { lruOf } from '../kernel/lru.ts';
import { type Principal, principalId } from '../kernel/principal.ts';

const TURNS = 10_000;
const TURN_MS = 600_000;

/**
 * How often a model calls an instance in one turn. The protocol has no turns: calls of one trace are one, and calls
 * without a trace are not counted. Each node counts for itself.
 */
export class TurnLimits {
  readonly #calls = lruOf<{ count: number }>(TURNS, { ttl: TURN_MS, ttlResolution: 1_000 });

  /** Counts a call. @returns whether it may be made */
  take(
    principal: Principal,
    { instanceId, maxCalls }: { instanceId: string; maxCalls: number | null },
    trace: string | null,
  ): boolean {
    if (maxCalls === null || trace === null) return true;
    const key = `${principalId(principal)} ${instanceId} ${trace}`;
    const calls = this.#calls.get(key) ?? { count: 0 };
    this.#calls.set(key, calls);
    calls.count++;
    return calls.count <= maxCalls;
  }
}
