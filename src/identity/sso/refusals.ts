import type { Budgets } from '../../access/budgets.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Config } from '../../config.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import type { Logger } from '../../platform/logger.ts';

/** What was not accepted. */
interface Refused {
  what: 'sign-in' | 'sign-out';
  protocol: string;
  /** Its message is the reason. */
  error: unknown;
}

interface RefusalDeps {
  config: Pick<Config, 'loginFailuresPerMinute'>;
  logger: Logger;
  budgets: Budgets;
}

/**
 * What comes in the name of identity providers and is not accepted: counted per address, with one budget for sign-ins
 * and sign-outs, and logged with its reason, which the sender is not told.
 */
export class Refusals {
  readonly #budget: Budget;
  readonly #logger: Logger;

  constructor({ config, logger, budgets }: RefusalDeps) {
    this.#budget = budgets.of('sso_refusals', config.loginFailuresPerMinute, 60);
    this.#logger = logger;
  }

  /** @throws RATE_LIMIT_EXCEEDED while too much of the caller's address was refused */
  async check({ request }: AnyCaller): Promise<void> {
    await this.#budget.check(request.ip);
  }

  /** Counts a refusal, and logs it. */
  async refuse(caller: AnyCaller, refused: Refused): Promise<void> {
    await this.count(caller);
    this.log(caller, refused);
  }

  /** Counts a refusal whose reason nobody needs. */
  async count({ request }: AnyCaller): Promise<void> {
    await this.#budget.take(request.ip);
  }

  /** Logs what failed without being counted. */
  log({ request }: AnyCaller, { what, protocol, error }: Refused): void {
    const reason = error instanceof Error ? error.message : 'unknown';
    this.#logger.warn({ trace_id: request.traceId, protocol, reason }, `a ${what} was not accepted`);
  }
}
