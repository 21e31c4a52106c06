import type { ServiceDeps } from '../../access/service-deps.ts';
import { demandWhole } from '../../access/whole-place.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import type { StepLength } from '../../kernel/time-zone.ts';
import { usageOf } from '../../models/views.ts';
import { bordersOf, calendarOf, endOf, type SpanRange } from './points.ts';
import { firstDayTold } from './runs.ts';

/** What a workspace used of models in a span. */
export interface ModelUsagePoint {
  /** The start of the span. */
  timestamp: Date;
  requests: number;
  errors: number;
  inputTokens: number;
  outputTokens: number;
  /** A decimal number. */
  cost: string;
}

/** What a workspace used of models, with the whole spans that the series covers. */
export interface ModelUsageSeries {
  step: StepLength;
  /** The start of the first span. */
  from: Date;
  /** The end of the last span. */
  to: Date;
  points: readonly ModelUsagePoint[];
}

/** Which usage, and when. What is not given is of all. */
export interface UsageAsked extends SpanRange {
  logicalModelId?: string | null;
  providerAccountId?: string | null;
  modelName?: string | null;
}

// the borders are the starts of the spans, and the end of the last one
const USAGE = `select width_bucket(u.start, $2::timestamptz[]) - 1 as at, sum(u.requests)::float8 as requests,
    sum(u.errors)::float8 as errors, sum(u.input_tokens)::float8 as "inputTokens",
    sum(u.output_tokens)::float8 as "outputTokens", trim_scale(sum(u.cost))::text as cost
  from (${usageOf('$1')}) u where u.start >= $3 and u.start < $4
    and ($5::text is null or u.logical_model_id = $5) and ($6::text is null or u.provider_account_id = $6)
    and ($7::text is null or u.model_name = $7)
  group by 1`;

const none = { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0, cost: '0' };

/** What workspaces used of models over time. */
export class ModelUsageHistory {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Usage by the hours, days or months of a time zone: none before the days that are told.
   * @throws FORBIDDEN for a token that is restricted to parts of the workspace; InputError for no time zone, an end
   * before the start, and too many points
   */
  async of(
    caller: Caller,
    { orgId, workspaceId }: Checked<WorkspacePlace>,
    { logicalModelId, providerAccountId, modelName, ...range }: UsageAsked,
  ): Promise<ModelUsageSeries> {
    demandWhole(caller, ['workspace'], 'model_entitlement:read');
    const calendar = calendarOf(range.tz);
    const borders = bordersOf(calendar, range);
    const [from, to] = [borders[0], endOf(borders)];
    const first = firstDayTold(calendar);
    const target = [logicalModelId ?? null, providerAccountId ?? null, modelName ?? null];
    const values = [workspaceId, borders, from < first ? first : from, to, ...target];
    const reads = this.#deps.slowReads.of(orgId, { caller });
    const rows = await reads.read<ModelUsagePoint & { at: number }>(USAGE, values);
    const found = new Map(rows.map(({ at, ...usage }) => [at, usage]));
    const points = borders.slice(0, -1).map((timestamp, at) => ({ ...(found.get(at) ?? none), timestamp }));
    return { step: range.step, from, to, points };
  }
}
