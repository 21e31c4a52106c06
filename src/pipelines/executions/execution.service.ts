import { isDeepStrictEqual } from 'node:util';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Config } from '../../config.ts';
import { brokenUnique } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { type Execution, Prisma } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { Task } from '../../kernel/tasks.ts';
import { emitProgress, recordReport, storable } from './execution.changes.ts';
import {
  begun,
  checkReport,
  checkSameRun,
  type ExecutionReport,
  isOver,
  progressAfter,
  progressOf,
  reopened,
} from './execution.progress.ts';
import { timeoutTasks } from './execution.timeouts.ts';

/** Filters of a list of runs. All of them apply. */
export interface ExecutionFilters {
  appId?: string | null;
  /** `running`, `completed` or `failed`. */
  status?: string | null;
  /** The earliest start, which is included. */
  startedFrom?: Date | null;
  /** The latest start, which is not included. */
  startedBefore?: Date | null;
}

type ExecutionArgs = PageArgs & ExecutionFilters;

const executionsOf = ({ access }: ServiceDeps) => ({
  kind: 'execution' as const,
  from: 'executions',
  columns: columnsOf(Object.values(Prisma.ExecutionScalarFieldEnum)),
  known: { by: 'executionId' as const },
  count: { ofPlace: 'executions' },
  filters: ({ appId, status, startedFrom, startedBefore }: ExecutionArgs) => ({
    't.app_id = ?': appId,
    't.status = ?': status,
    't.started_at >= ?': startedFrom,
    't.started_at < ?': startedBefore,
  }),
  demands: async (place: WorkspacePlace, { appId, startedFrom, startedBefore }: ExecutionArgs) => {
    if (startedFrom && startedBefore && startedBefore < startedFrom)
      throw invalidInput(['startedBefore'], 'the end is before the start');
    if (appId) await access.parts.findPart(place, 'app', appId);
  },
});

/** Runs of augmentations: what runs them is not this service, what they did is known here. */
export class ExecutionService implements Owner {
  readonly reads: Reads<Execution, WorkspacePlace, ExecutionArgs>;
  /** The runs of one app. */
  readonly ofApp: Reads<Execution, AppPlace, ExecutionArgs>;
  readonly tasks: readonly Task[];
  /** As long as activity records are kept. */
  readonly retention = [`delete from executions where created_at < now() - interval '90 days'`];
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps & { config: Pick<Config, 'executionTimeoutHours'> }) {
    this.#deps = deps;
    this.tasks = timeoutTasks(deps, deps.config.executionTimeoutHours);
    const executions = executionsOf(deps);
    this.reads = new Reads(deps, { ...executions, below: ['orgId', 'workspaceId'] });
    this.ofApp = new Reads(deps, {
      ...executions,
      name: 'executions_of_app',
      below: ['orgId', 'workspaceId', 'appId'],
    });
  }

  /**
   * Takes a report of a run. The first one with its identifier makes it known, later ones advance it; what is known
   * already, or was reported late, changes nothing. A run that the service closed because no report came goes on.
   * @throws FORBIDDEN; RESOURCE_NOT_FOUND `app`, `augmentation`, `endpoint` or `action`; InputError for a report that
   * contradicts itself; RESOURCE_CONFLICT `conflicting_report` for one that contradicts what is known
   */
  async report(caller: Caller, { orgId, workspaceId }: WorkspacePlace, report: ExecutionReport): Promise<Execution> {
    const { access } = this.#deps;
    const place = { orgId, workspaceId, appId: report.appId };
    await access.requireWorkspace(caller, orgId, workspaceId, 'execution:create', { appId: report.appId });
    await access.parts.findPart(place, 'app', report.appId);
    const now = new Date();
    checkReport(report, now);
    const take = () => this.#take(caller, place, report, now);
    try {
      return await take();
    } catch (error) {
      // another first report of the same run was faster: this one is a later one
      if (!brokenUnique(error)) throw error;
      return take();
    }
  }

  async #take(caller: Caller, place: AppPlace, report: ExecutionReport, now: Date): Promise<Execution> {
    const { orgId, workspaceId } = place;
    const { executionId } = report;
    return this.#deps.changes.run(caller, async (tx) => {
      tx.demand('apps', { id: place.appId }, 'key share', () => notFound('app', place.appId));
      const known = await tx.lock('executions', { orgId, workspaceId, executionId }, 'no key update');
      if (!known) return begin(tx, caller, place, report, now);
      checkSameRun(known, report);
      const stored = progressOf(known);
      const before = reopened(stored);
      const after = progressAfter(before, report, { startedAt: known.startedAt, now });
      recordReport(tx, known, before, after);
      if (isDeepStrictEqual(after, stored)) {
        if (!isOver(stored) && known.reportedAt < aMinuteBefore(now))
          tx.write(statement`update executions set reported_at = ${now} where id = ${known.id}`);
        return known;
      }
      const row = { ...storable(after), reportedAt: now };
      return tx.change('executions', { id: known.id }, row, () => notFound('execution', executionId));
    });
  }
}

const aMinuteBefore = (time: Date): Date => new Date(time.getTime() - 60_000);

async function begin(tx: Tx, caller: Caller, place: AppPlace, report: ExecutionReport, now: Date) {
  const { executionId, augmentationId, endpointId = null, actionId = null } = report;
  const stages = await demandParts(tx, place, report);
  const startedAt = report.startedAt ?? earlier(now, report.endedAt);
  const before = begun(report.totalStages ?? stages);
  const after = progressAfter(before, report, { startedAt, now });
  const row = { id: newId('execution'), ...place, executionId, augmentationId, endpointId, actionId };
  emitProgress(tx, 'started', row, after);
  recordReport(tx, row, before, after);
  const { userId, token } = caller.principal;
  return tx.create('executions', {
    ...row,
    ...storable(after),
    startedAt,
    reportedAt: now,
    createdBy: userId,
    tokenId: token?.id ?? null,
  });
}

const earlier = (now: Date, endedAt: Date | null | undefined): Date => (endedAt && endedAt < now ? endedAt : now);

/**
 * What a run names must be there when it begins. @returns the number of stages of the augmentation
 * @throws RESOURCE_NOT_FOUND `augmentation`, `endpoint` or `action`
 */
async function demandParts(
  tx: Tx,
  { appId }: AppPlace,
  { augmentationId, endpointId, actionId }: ExecutionReport,
): Promise<number> {
  const [found] = await tx.query<{ stages: number | null }>(statement`
    select (select count(*)::int from augmentation_stages s where s.augmentation_id = a.id) as stages
    from augmentations a where a.id = ${augmentationId} and a.app_id = ${appId}`);
  if (!found) throw notFound('augmentation', augmentationId);
  if (endpointId && !(await findRow(tx, 'endpoints', { id: endpointId, appId })))
    throw notFound('endpoint', endpointId);
  if (actionId && !(await findRow(tx, 'actions', { id: actionId, appId }))) throw notFound('action', actionId);
  return found.stages ?? 0;
}
