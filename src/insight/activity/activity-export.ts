import type { Authentication } from '../../access/authentication.ts';
import type { Activity } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { ApiError, unauthenticated } from '../../kernel/errors.ts';
import type { Grant } from '../../kernel/roles.ts';
import { type SlotLimits, Slots } from '../../kernel/slots.ts';
import type { ActivityFilters, ActivityService } from './activity.service.ts';
import { keyOfRecord } from './activity-scope.ts';

/** Records that are in memory at once. */
const PAGE = 500;
const PAGE_MS = 10_000;
/** Limit of a whole export: what is left is asked for with `after`. */
const EXPORT_MS = 600_000;
/** Exports at once. */
const SLOTS: SlotLimits = { total: 32, perOwner: 2, waitingPerOwner: 0 };
/** Those of one user in an organization: whoever reads slowly holds up nobody else. */
const SLOTS_OF_USER: SlotLimits = { ...SLOTS, perOwner: 1 };

interface ExportDeps {
  activityLog: ActivityService;
  authentication: Pick<Authentication, 'lives'>;
  limitMs?: number;
}

/** What is exported, and for whom. */
export interface ExportRequest {
  caller: Caller;
  orgId: string;
  filters: ActivityFilters;
  /** The key of the last record that the client has; `null` for the beginning. */
  after: string | null;
  /** What the caller may read; asked before each page. @throws errors that end the export */
  demand: () => Promise<Grant>;
}

/** Exports the records of an organization, page by page: however many there are, few are in memory. */
export class ActivityExports {
  readonly #deps: ExportDeps;
  readonly #slots = new Slots(SLOTS, tooMany);
  readonly #slotsOfUsers = new Slots(SLOTS_OF_USER, tooMany);
  /** How long an export may take, whatever its client reads. */
  readonly limitMs: number;

  constructor(deps: ExportDeps) {
    this.#deps = deps;
    this.limitMs = deps.limitMs ?? EXPORT_MS;
  }

  /** Takes one of the places for exports. @returns what gives it back @throws SERVICE_UNAVAILABLE if there is none */
  async enter(orgId: string, userId: string): Promise<() => void> {
    const user = `${orgId} ${userId}`;
    const { signal } = new AbortController();
    await this.#slotsOfUsers.take(user, signal);
    try {
      await this.#slots.take(orgId, signal);
    } catch (error) {
      this.#slotsOfUsers.release(user);
      throw error;
    }
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#slots.release(orgId);
      this.#slotsOfUsers.release(user);
    };
  }

  /**
   * Pages of records, newest first, until there are no more. Each is read once it is wanted, as long as the caller may.
   * @throws InputError for an end before the start; what `demand` throws; AUTHENTICATION_FAILED once the session or
   * token has ended; SERVICE_UNAVAILABLE after the time limit
   */
  async *pages(request: ExportRequest): AsyncGenerator<Activity[], void> {
    const { activityLog } = this.#deps;
    const { caller, orgId, filters, demand } = request;
    const endsAt = performance.now() + this.limitMs;
    for (let { after } = request; ; ) {
      const asked = { after, limit: PAGE, limitMs: PAGE_MS };
      const { rows, hasMore } = await activityLog.next(caller, { orgId }, await demand(), filters, asked);
      yield rows;
      if (!hasMore) return;
      if (performance.now() >= endsAt) throw tooLong();
      after = keyOfRecord(rows.at(-1)!);
      if (!(await this.#deps.authentication.lives(caller.principal))) throw unauthenticated();
    }
  }
}

const tooMany = () =>
  new ApiError(
    'SERVICE_UNAVAILABLE',
    { retry_after: 5, reason: 'too_many_at_once' },
    'Too many exports of activity run at once. Try again later.',
  );

const tooLong = () =>
  new ApiError('SERVICE_UNAVAILABLE', { retry_after: 1, reason: 'time_limit' }, 'The export has taken too long.');
