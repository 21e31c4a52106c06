import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import type { Execution } from '../../generated/prisma/client.ts';
import type { AppPlace } from '../../kernel/checked-place.ts';
import type { EventName } from '../../kernel/resources.ts';
import { isOver, type Progress, usedSince } from './execution.progress.ts';

/** The columns of a state. */
export const storable = (progress: Progress) => ({ ...progress, tokenUsage: { ...progress.tokenUsage } });

/** What names a run. */
type RunIds = AppPlace & Pick<Execution, 'executionId' | 'augmentationId'>;

/** Emits the events of a report, and records it with the tokens that were used since the report before. */
export function recordReport(tx: Tx, row: RunIds, before: Progress, after: Progress): void {
  const { orgId, workspaceId, appId, executionId, augmentationId } = row;
  const { stagesCompleted, totalStages, status } = after;
  if (stagesCompleted > before.stagesCompleted) emitProgress(tx, 'stage_completed', row, after);
  if (isOver(after) && !isOver(before)) emitProgress(tx, status === 'failed' ? 'failed' : 'completed', row, after);
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
    metadata: { status, ...(after.isTimedOut && { timed_out: true }) },
  });
}

/** Emits an event of a run. */
export function emitProgress(
  tx: Tx,
  name: EventName<'execution'>,
  row: RunIds,
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
