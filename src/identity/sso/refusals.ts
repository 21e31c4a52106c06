import type { Budgets } from '../../access/budgets.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Config } from '../../config.ts';
import { type ActivityRecorder, outcomeOf } from '../../data/activity.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import type { ApiError } from '../../kernel/errors.ts';
import type { Logger } from '../../platform/logger.ts';
import { CountedAttempts } from '../auth/counted-attempts.ts';

/** What was not accepted. */
interface Refused {
  what: 'sign-in' | 'sign-out';
  protocol: string;
  /** Its message is the reason. */
  error: unknown;
}

/** Whose sign-in it was, as far as that is certain: of somebody at this provider. */
export interface TriedProvider {
  id: string;
  orgId: string;
}

interface RefusalDeps {
  config: Pick<Config, 'loginFailuresPerMinute'>;
  logger: Logger;
  budgets: Budgets;
  activity: ActivityRecorder;
}

/**
 * What comes in the name of identity providers and is not accepted: counted per address, with one budget for sign-ins
 * and sign-outs, and logged with its reason, which the sender is not told.
 */
export class Refusals {
  readonly #budget: Budget;
  readonly #logger: Logger;
  readonly #activity: ActivityRecorder;
  readonly #counted = new CountedAttempts();

  constructor({ config, logger, budgets, activity }: RefusalDeps) {
    this.#budget = budgets.of('sso_refusals', config.loginFailuresPerMinute, 60);
    this.#logger = logger;
    this.#activity = activity;
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

  /**
   * Records a sign-in that was not accepted for the administrators of the provider's organization. Nothing of it is
   * proven, so it is nobody's, and many of one kind are one record a minute.
   */
  record(caller: AnyCaller, { id, orgId }: TriedProvider, { failure, answer }: { failure: string; answer: ApiError }) {
    const took = performance.now() - caller.request.startedAt;
    this.#counted.note(`${id} ${failure}`, (attempts) => {
      // the record may be written a minute later
      const request = { ...caller.request, startedAt: performance.now() - took };
      this.#activity.record(
        { ...caller, principal: null, request },
        {
          action: 'login',
          resourceType: 'user',
          resourceId: null,
          orgId,
          metadata: { identity_provider_id: id, reason: 'not_accepted', failure, attempts },
        },
        outcomeOf(answer),
      );
    });
  }

  /** Records what is only counted so far. A clean stop does so before it writes the last records. */
  recordCounted(): void {
    this.#counted.flush();
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
