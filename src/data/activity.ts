import type { ActivityAction } from '../kernel/actions.ts';
import type { AnyCaller } from '../kernel/caller.ts';
import { codeOf, type ErrorCode, errorCatalogue } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import { DEFAULT_NAMESPACE, type Place } from '../kernel/place.ts';
import type { ResourceWord } from '../kernel/resources.ts';
import { shownAddress } from '../kernel/shown-address.ts';
import { apart } from '../kernel/spans.ts';
import { TASK_METHOD } from '../kernel/system-caller.ts';
import { isDatabaseAway } from '../platform/postgres/faults.ts';
import { type ActivityRow, columns } from './activity-columns.ts';
import { bulkInsert } from './bulk-insert.ts';
import { FailedSignIns } from './failed-sign-ins.ts';
import { RESOURCE_IS_THERE } from './named-resources.ts';
import type { Sql } from './sql.ts';
import type { Write } from './writes.ts';

/** What a service did to which resource, and the place that it is in. */
export interface ActivityEntry extends Place {
  action: ActivityAction;
  resourceType: ResourceWord;
  resourceId: string | null;
  orgId: string | null;
  workspaceId?: string | null;
  /** The user, if nobody is signed in: the account that a mailed token belongs to. */
  userId?: string | null;
  /**
   * The account that somebody tried to sign in to: the record is that account's, and of nobody who acted. Without an
   * organization it goes to all that may know of it (docs/decisions/0031).
   */
  accountId?: string | null;
  /** The run that the operation is part of, if any. */
  executionId?: string | null;
  /** What the run is of, and how far it is. */
  augmentationId?: string | null;
  stagesCompleted?: number;
  totalStages?: number;
  /** Model tokens that it used: `input`, `output`, `total`. */
  tokenUsage?: Readonly<Record<string, number>>;
  metadata?: Record<string, unknown>;
  /** Whether what was asked has succeeded, where an answer alone does not say. Default: by the status. */
  success?: boolean;
  /** The root field of a GraphQL operation: all of them have one path. */
  field?: string;
}

/** The result of an operation. */
export interface ActivityOutcome {
  statusCode: number;
  /** Default: whether the status is below 400. */
  success?: boolean;
  errorCode?: ErrorCode | null;
}

/** The result of a failed operation. */
export function outcomeOf(error: unknown): ActivityOutcome {
  const errorCode = codeOf(error);
  return { statusCode: errorCatalogue[errorCode].status, errorCode };
}

/** The record of an operation (spec, Activity record). Bodies are never stored. */
export function activityRow(caller: AnyCaller, entry: ActivityEntry, outcome?: ActivityOutcome): ActivityRow {
  const { request, principal } = caller;
  const statusCode = outcome?.statusCode ?? request.successStatus;
  const userId = principal?.userId ?? caller.signedInAs?.userId ?? entry.userId ?? null;
  return {
    id: newId('activity'),
    timestamp: new Date(),
    trace_id: request.traceId,
    org_id: recordable(entry.orgId),
    user_id: userId ?? entry.accountId ?? null,
    workspace_id: recordable(entry.workspaceId),
    namespace_id: recordable(entry.namespaceId),
    environment_id: recordable(entry.environmentId),
    app_id: recordable(entry.appId),
    principal_type: principal?.type ?? (isOfService(caller) ? 'system' : userId ? 'user' : 'anonymous'),
    principal_id: principal?.token?.id ?? caller.scimTokenId ?? userId,
    token_id: principal?.token?.id ?? null,
    token_type: principal?.token?.type ?? null,
    method: request.method,
    path: request.path,
    resource_type: entry.resourceType,
    resource_id: recordable(entry.resourceId),
    action: entry.action,
    status_code: statusCode,
    success: outcome?.success ?? entry.success ?? statusCode < 400,
    error_code: outcome?.errorCode ?? null,
    duration_ms: Math.round(performance.now() - request.startedAt),
    execution_id: recordable(entry.executionId),
    augmentation_id: recordable(entry.augmentationId),
    stages_completed: entry.stagesCompleted ?? null,
    total_stages: entry.totalStages ?? null,
    token_usage: entry.tokenUsage ? JSON.stringify(entry.tokenUsage) : '{}',
    metadata: metadataOf(caller, entry, statusCode),
  };
}

/** Nobody who is signed in, or who could be: the service itself, or the directory of an organization. */
const isOfService = ({ request, scimTokenId }: AnyCaller): boolean =>
  request.method === TASK_METHOD || scimTokenId !== undefined;

/**
 * The metadata of a record as JSON. A record of GraphQL also names its root field, and one of an application that acts
 * for a user names the application; one of a directory names its token. A sign-in that failed names where it came from.
 */
function metadataOf(
  { request, principal, scimTokenId }: AnyCaller,
  { metadata, action, field = request.rootField }: ActivityEntry,
  statusCode: number,
): string {
  const applicationId = principal?.token?.applicationId;
  const given = {
    ...metadata,
    ...(applicationId !== undefined && { application_id: applicationId }),
    ...(scimTokenId !== undefined && { scim_token_id: scimTokenId }),
    ...(action === 'login' && statusCode >= 400 && { client_address: shownAddress(request.ip) }),
  };
  if (request.isRest) return JSON.stringify(given);
  return JSON.stringify({ ...given, graphql_field: field });
}

/**
 * Ids of refused requests are arbitrary text from the caller: stored as far as PostgreSQL can store them, and no longer
 * than a real id.
 */
export const recordable = (id: string | null | undefined): string | null =>
  id?.toWellFormed().replaceAll('\0', '\uFFFD').slice(0, 128) ?? null;

const insert = bulkInsert('activity', columns);
const names = Object.keys(columns) as (keyof ActivityRow)[];

const isThere = (table: string, column: string): string =>
  `(r.${column} is null or exists (select from ${table} p where p.id = r.${column} and p.org_id = r.org_id))`;
const inPlaces = `${isThere('workspaces', 'workspace_id')} and ${isThere('apps', 'app_id')}
  and ${isThere('namespaces', 'namespace_id')} and ${isThere('environments', 'environment_id')}`;

/**
 * Which columns keep what an answered request named. What is not there has no list and no sums, and a stranger is in no
 * list but that of the organization: whatever callers make up, they make no sums of it.
 */
const kept = {
  org_id: 'exists (select from organizations o where o.id = r.org_id)',
  user_id: 'm.may_be_listed',
  token_id: 'm.may_be_listed',
  workspace_id: `m.may_be_listed and ${isThere('workspaces', 'workspace_id')}`,
  app_id: `m.may_be_listed and ${isThere('apps', 'app_id')}`,
  namespace_id: `m.may_be_listed and ${isThere('namespaces', 'namespace_id')}`,
  environment_id: `m.may_be_listed and ${isThere('environments', 'environment_id')}`,
  resource_id: `r.success or r.resource_id is null
    or m.may_be_listed and r.status_code <> 404 and ${inPlaces} and ${RESOURCE_IS_THERE}`,
} as const satisfies Partial<Record<keyof ActivityRow, string>>;
const keptColumns = Object.keys(kept) as (keyof typeof kept)[];

/** Properties of a record whose value may be in its column, or in `named` under the name of the column. */
export const namedColumns: readonly string[] = keptColumns;

const DEFAULT_NAMESPACE_ID = `(select n.id from namespaces n
  where n.org_id = u.org_id and n.workspace_id = u.workspace_id and n.slug = '${DEFAULT_NAMESPACE}')`;

/** Requests name a namespace by a word, and an entitlement by its model: records have the identifiers of both. */
const identified: Partial<Record<keyof ActivityRow, string>> = {
  namespace_id: `case u.namespace_id when '${DEFAULT_NAMESPACE}' then ${DEFAULT_NAMESPACE_ID}
    else u.namespace_id end`,
  resource_id: `case
    when u.resource_type = 'namespace' and u.resource_id = '${DEFAULT_NAMESPACE}' then ${DEFAULT_NAMESPACE_ID}
    when u.resource_type = 'model_entitlement' then coalesce((select e.id from model_entitlements e
      where e.workspace_id = u.workspace_id and e.logical_model_id = u.resource_id), u.resource_id)
    else u.resource_id end`,
};

/**
 * Inserts records of requests that have been answered, in one statement for any number. One that was inserted before,
 * although the answer was lost, is left as it is. Without `offset 0`, PostgreSQL puts the conditions of a column in
 * each place that asks for them, and plans and asks them twice.
 *
 * The arrays stand behind a `select`, where PostgreSQL does not see how many records they have. Otherwise it takes the
 * plan for one record for much cheaper than that for any number, and plans the statement for each batch anew: that
 * takes ten times as long as to run it.
 * @param conditions whether a column keeps what the request named, as SQL
 */
const insertAnswered = (conditions: Record<keyof typeof kept, string>): string =>
  `insert into activity (${names.join(', ')}, named)
  select ${names
    .map((name) => (name in conditions ? `case when k.${name} is not false then r.${name} end` : `r.${name}`))
    .join(', ')},
    case when k.org_id is not null then nullif(jsonb_strip_nulls(jsonb_build_object(${keptColumns
      .map((name) => `'${name}', case when not k.${name} then r.${name} end`)
      .join(', ')})), '{}') end
  from (select ${names.map((name) => `${identified[name] ?? `u.${name}`} as ${name}`).join(', ')}
    from unnest(${names.map((name, index) => `(select $${index + 1}::${columns[name]}[])`).join(', ')})
      u(${names.join(', ')})) r
  left join lateral (select ${keptColumns.map((name) => `${conditions[name]} as ${name}`).join(', ')}
    from (select r.success or exists (select from organization_members m
      where m.org_id = r.org_id and m.user_id = r.user_id) as may_be_listed) m
  offset 0) k on r.org_id is not null and r.principal_type <> 'anonymous'
  on conflict do nothing`;
const INSERT_ANSWERED = insertAnswered(kept);
/** The same for a batch of which no resource has to be looked for, in one table of many: a quarter of the work. */
const INSERT_DONE = insertAnswered({ ...kept, resource_id: 'true' });

const insertOf = (batch: readonly ActivityRow[]): string =>
  batch.every(({ success, resource_id: id }) => success || id === null) ? INSERT_DONE : INSERT_ANSWERED;

/**
 * Inserts one record for each row of a statement's `changed c`, as a part of that statement.
 * @param first number of its first parameter
 * @param metadata SQL over `c` that returns additional metadata, as jsonb
 */
export function recordOfChanged(
  first: number,
  metadata: string,
): { text: string; parameters(row: ActivityRow): unknown[] } {
  const values = names.map(
    (name, index) => `$${first + index}::${columns[name]}${name === 'metadata' ? ` || ${metadata}` : ''}`,
  );
  return {
    text: `insert into activity (${names.join(', ')}) select ${values.join(', ')} from changed c`,
    parameters: (row) => names.map((name) => row[name]),
  };
}

/** The record, written as a part of the change that it describes. */
export const writeActivity = (row: ActivityRow): Write => insert.write([row]);

/**
 * Reads and failures are recorded too, but outside the request path: collected and written in batches (an awaited
 * insert doubles the cost of a small request, a batch adds 3 %). Records that cannot be written are kept and retried,
 * up to a limit.
 */
export class ActivityRecorder {
  /** Whole months, which end with their partitions: a record is kept for at least 90 days. */
  readonly retention = [`select drop_activity_before(now() - interval '90 days')`];
  readonly #sql: Sql;
  readonly #onFault: (error: unknown, lost: number) => void;
  readonly #recorded = new WeakSet<object>();
  #pending: ActivityRow[] = [];
  #flushing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;
  #isAway = false;
  #lost = 0;
  #reported = 0;
  readonly #failedSignIns = new Map<string, number>();
  readonly #strangers: FailedSignIns;
  readonly #maxKept: number;

  /** @param maxKept maximum number of records that wait while the database is unreachable */
  constructor(sql: Sql, onFault: (error: unknown, lost: number) => void, maxKept = MAX_KEPT) {
    this.#sql = sql;
    this.#onFault = onFault;
    this.#maxKept = maxKept;
    this.#strangers = new FailedSignIns(sql, (row) => this.#keep(row));
  }

  /** Sign-ins that failed since the start, by the code of the error. */
  get failedSignIns(): ReadonlyMap<string, number> {
    return this.#failedSignIns;
  }

  /** Records that are not written yet. */
  get depth(): number {
    return this.#pending.length;
  }

  /** Records that were dropped since the start: refused, or too many to keep. */
  get lost(): number {
    return this.#lost;
  }

  record(caller: AnyCaller, entry: ActivityEntry, outcome: ActivityOutcome): void {
    if (entry.action === 'login' && outcome.statusCode >= 400) this.#countSignIn(entry, outcome);
    this.#keep(activityRow(caller, entry, outcome));
  }

  #keep(row: ActivityRow): void {
    if (this.#pending.length >= this.#maxKept) {
      this.#lost += 1;
      return;
    }
    this.#pending.push(row);
    // while the database is unreachable, only the timer retries, not each record
    if (this.#pending.length >= MAX_BATCH && !this.#isAway) apart(() => void this.flush());
    else this.#flushIn(this.#isAway ? RETRY_MS : FLUSH_MS);
  }

  /** Not as part of the request that records first: the records of others are written with its own. */
  #flushIn(ms: number): void {
    this.#timer ??= apart(() => setTimeout(() => void this.flush(), ms));
  }

  /** Some records stand for many attempts. */
  #countSignIn({ metadata }: ActivityEntry, { errorCode }: ActivityOutcome): void {
    const code = errorCode ?? 'INTERNAL_SERVER_ERROR';
    const attempts = typeof metadata?.attempts === 'number' ? metadata.attempts : 1;
    this.#failedSignIns.set(code, (this.#failedSignIns.get(code) ?? 0) + attempts);
  }

  /**
   * Writes a record before it returns, for operations that must not be answered unrecorded. The answer of the
   * operation, `result`, is then not recorded again. @throws the errors of the database
   */
  async recordNow(caller: AnyCaller, entry: ActivityEntry, result: object): Promise<void> {
    await this.#sql.write(insert.text, insert.parameters([activityRow(caller, entry)]));
    this.#recorded.add(result);
  }

  /** Whether the answer of an operation was recorded by {@link recordNow}. */
  hasRecorded(result: unknown): boolean {
    // of what is no object it has nothing
    return this.#recorded.has(result as object);
  }

  /** Writes everything, also what is only counted so far: a clean stop awaits it, so that no record is lost. */
  async end(): Promise<void> {
    await this.flush();
    this.#strangers.flush();
    await this.flush();
  }

  /** Writes everything that was recorded before the call. */
  flush(): Promise<void> {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    // one after the other, so awaiting the last one awaits all
    this.#flushing = this.#flushing.then(() => this.#writeAll());
    return this.#flushing;
  }

  async #writeAll(): Promise<void> {
    while (this.#pending.length > 0) {
      let batch = this.#pending.splice(0, MAX_BATCH);
      try {
        batch = await this.#strangers.within(batch);
        if (batch.length > 0) await this.#sql.change(insertOf(batch), insert.parameters(batch));
        this.#isAway = false;
      } catch (error) {
        if (!isDatabaseAway(error)) {
          await this.#writeEach(batch, error);
          continue;
        }
        this.#isAway = true;
        const kept = batch.slice(0, Math.max(0, this.#maxKept - this.#pending.length));
        this.#pending.unshift(...kept);
        this.#lost += batch.length - kept.length;
        this.#report(error);
        this.#flushIn(RETRY_MS);
        return;
      }
    }
  }

  /** One record that PostgreSQL refuses must not fail the others. */
  async #writeEach(batch: readonly ActivityRow[], cause: unknown): Promise<void> {
    for (const row of batch) {
      await this.#sql.change(insertOf([row]), insert.parameters([row])).catch((error: unknown) => {
        if (isDatabaseAway(error)) this.#pending.push(row);
        else this.#lost += 1;
      });
    }
    if (this.#lost > this.#reported) this.#report(cause);
  }

  #report(error: unknown): void {
    this.#onFault(error, this.#lost - this.#reported);
    this.#reported = this.#lost;
  }
}

const MAX_BATCH = 500;
const MAX_KEPT = 20_000;
const FLUSH_MS = 100;
const RETRY_MS = 1_000;
