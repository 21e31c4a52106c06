import type { Budgets } from '../../access/budgets.ts';
import type { Budget } from '../../access/throttle.ts';
import { rateLimited } from '../../kernel/errors.ts';
import { lruOf } from '../../kernel/lru.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';

const PER_MINUTE = 600;
/** A provider does not stop a group for longer. */
const LONGEST_PAUSE_MS = 300_000;

interface Limited {
  instance: { id: string };
  action: ToolAction;
}

/**
 * How often actions run: those of one `rate_limit_group` of an instance share a budget, and wait together when the
 * provider says that it gets too many requests.
 */
export class ActionLimits {
  readonly #budget: Budget;
  readonly #pauses = lruOf<number>(10_000);

  constructor(budgets: Budgets) {
    this.#budget = budgets.of('tool_actions', PER_MINUTE, 60);
  }

  /** @throws RATE_LIMIT_EXCEEDED */
  async demand(of: Limited): Promise<void> {
    const key = keyOf(of);
    const left = (this.#pauses.get(key) ?? 0) - Date.now();
    if (left > 0) throw rateLimited(left / 1_000, 'The provider of the tool asked for fewer requests.');
    await this.#budget.demand(key);
  }

  /** Stops a group for as long as its provider asks. */
  pause(of: Limited, ms: number): void {
    this.#pauses.set(keyOf(of), Date.now() + Math.min(ms, LONGEST_PAUSE_MS));
  }
}

/** An action without a group is one. */
const keyOf = ({ instance, action }: Limited): string => {
  const { rate_limit_group: group } = action;
  return typeof group === 'string' && group !== '' ? `${instance.id} group ${group}` : `${instance.id} ${action.name}`;
};
