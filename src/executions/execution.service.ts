import { isDeepStrictEqual } from 'node:util';
import type { Actor } from '../access/caller.ts';
import type { AppPlace, WorkspacePlace } from '../access/checked-place.ts';
import { invalidInput, notFound } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import type { Owner } from '../core/owner.ts';
import type { EventName } from '../core/resources.ts';
import { brokenUnique, type Tx } from '../data/changes.ts';
import { findRow } from '../data/find-row.ts';
import type { PageArgs } from '../data/page.ts';
import { columnsOf } from '../data/pages.ts';
import { Reads } from '../data/reads.ts';
import { emitChange } from '../data/record-change.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { statement } from '../data/writes.ts';
import { type Execution, Prisma } from '../generated/prisma/client.ts';
import {
  begun,
  checkReport,
  checkSameRun,
  type ExecutionReport,
  isOver,
  type Progress,
  progressAfter,
  progressOf,
  usedSince,
} from './execution.progress.ts';

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
  knownBy: 'executionId' as const,
  placeCount: 'executions',
  filters: ({ appId, status, startedFrom, startedBefore }: ExecutionArgs) => ({
    't.app_id = ?': appId,
    't.status = ?': status,
    't.started_at >= ?': startedFrom,
    't.started_at < ?': startedBefore,
  }),
  demands: async (place: WorkspacePlace, { appId, startedFrom, startedBefore }: ExecutionArgs) => {
    if (startedFrom && startedBefore && startedBefore < startedFrom)
      throw invalidInput(['startedBefore'], 'the end is before the start');
    if (appId) await access.findPart(place, 'app', appId);
  },
});

/** Runs of augmentations: what runs them is not this service, what they did is known here. */
export class ExecutionService implements Owner {
  readonly reads: Reads<Execution, WorkspacePlace, ExecutionArgs>;
  /** The runs of one app. */
  readonly ofApp: Reads<Execution, AppPlace, ExecutionArgs>;
  /** As long as activity records are kept. */
  readonly retention = [`delete from executions where created_at < now() - interval '90 days'`];
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
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
   * already, or was reported late, changes nothing.
   * @throws FORBIDDEN; RESOURCE_NOT_FOUND `app`, `augmentation`, `endpoint` or `action`; InputError for a report that
   * contradicts itself; RESOURCE_CONFLICT `conflicting_report` for one that contradicts what is known
   */
  async report(actor: Actor, { orgId, workspaceId }: WorkspacePlace, report: ExecutionReport): Promise<Execution> {
    const { access } = this.#deps;
    const place = { orgId, workspaceId, appId: report.appId };
    await access.requireWorkspace(actor, orgId, workspaceId, 'execution:create', { appId: report.appId });
    await access.findPart(place, 'app', report.appId);
    const now = new Date();
    checkReport(report, now);
    const take = () => this.#take(actor, place, report, now);
    try {
      return await take();
    } catch (error) {
      // another first report of the same run was faster: this one is a later one
      if (!brokenUnique(error)) throw error;
      return take();
    }
  }

  async #take(actor: Actor, place: AppPlace, report: ExecutionReport, now: Date): Promise<Execution> {
    const { orgId, workspaceId } = place;
    const { executionId } = report;
    return this.#deps.changes.run(actor, async (tx) => {
      tx.demand('apps', { id: place.appId }, 'key share', () => notFound('app', place.appId));
      const known = await tx.lock('executions', { orgId, workspaceId, executionId }, 'no key update');
      if (!known) return begin(tx, actor, place, report, now);
      checkSameRun(known, report);
      const before = progressOf(known);
      const after = progressAfter(before, report, { startedAt: known.startedAt, now });
      record(tx, known, before, after);
      if (isDeepStrictEqual(after, before)) return known;
      return tx.change('executions', { id: known.id }, storable(after), () => notFound('execution', executionId));
    });
  }
}

const storable = (progress: Progress) => ({ ...progress, tokenUsage: { ...progress.tokenUsage } });

async function begin(tx: Tx, actor: Actor, place: AppPlace, report: ExecutionReport, now: Date) {
  const { executionId, augmentationId, endpointId = null, actionId = null } = report;
  const stages = await demandParts(tx, place, report);
  const startedAt = report.startedAt ?? earlier(now, report.endedAt);
  const before = begun(report.totalStages ?? stages);
  const after = progressAfter(before, report, { startedAt, now });
  const row = { id: newId('execution'), ...place, executionId, augmentationId, endpointId, actionId };
  emit(tx, 'started', row, after);
  record(tx, row, before, after);
  const { userId, token } = actor.principal;
  return tx.create('executions', {
    ...row,
    ...storable(after),
    startedAt,
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

type Named = AppPlace & Pick<Execution, 'executionId' | 'augmentationId'>;

/** Emits the events of a report, and records it with the tokens that were used since the report before. */
function record(tx: Tx, row: Named, before: Progress, after: Progress): void {
  const { orgId, workspaceId, appId, executionId, augmentationId } = row;
  const { stagesCompleted, totalStages, status } = after;
  if (stagesCompleted > before.stagesCompleted) emit(tx, 'stage_completed', row, after);
  if (isOver(after) && !isOver(before)) emit(tx, status === 'failed' ? 'failed' : 'completed', row, after);
  tx.audit({
    action: 'execute',
    resourceType: 'execution',
    resourceId: executionId,
    orgId,
    workspaceId,
    appId,
    executionId,
    augmentationId,
    stagesCompleted,
    totalStages,
    tokenUsage: { ...usedSince(before.tokenUsage, after.tokenUsage) },
    metadata: { status },
  });
}

function emit(
  tx: Tx,
  name: EventName<'execution'>,
  row: Named,
  { status, stagesCompleted, totalStages }: Progress,
): void {
  emitChange(
    tx,
    name,
    'execution',
    { ...row, id: row.executionId },
    {
      augmentation_id: row.augmentationId,
      status,
      stages_completed: stagesCompleted,
      total_stages: totalStages,
    },
  );
}
