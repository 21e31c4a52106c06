import { bulkInsertOf } from '../../data/bulk-insert.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import type { Deployment } from '../../generated/prisma/client.ts';
import type { ActivityAction } from '../../kernel/actions.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import { newId } from '../../kernel/ids.ts';
import type { EventName } from '../../kernel/resources.ts';
import type { FilledSlot, Slot } from './slots.ts';

/** The action of a deployment record (defaults §6). */
export type DeploymentAction = 'deploy' | 'undeploy' | 'rollback' | 'promote';

/** Its names in the audit trail (defaults §9) and in the event stream (defaults §10). */
const recordedAs: Record<DeploymentAction, { activity: ActivityAction; event: EventName<'deployment'> }> = {
  deploy: { activity: 'deploy', event: 'created' },
  promote: { activity: 'promote', event: 'created' },
  rollback: { activity: 'deploy', event: 'rolled_back' },
  undeploy: { activity: 'undeploy', event: 'removed' },
};

/**
 * Puts a release in a slot that the caller has locked, or removes the current one (`undeploy`, with the removed
 * release): writes the next record of the chain, the pointer, the audit record and the event.
 */
export function fillSlot(
  tx: Tx,
  caller: Caller,
  place: WorkspacePlace,
  slot: Slot,
  change: { action: DeploymentAction; releaseId: string },
): Deployment {
  const record = nextRecord(caller, place, slot, change);
  const { environmentId, appId, number } = record;
  tx.insert('deployments', record);
  const releaseId = change.action === 'undeploy' ? null : change.releaseId;
  tx.update('environment_slots', { environmentId, appId }, { releaseId, lastNumber: number });
  recordDeployment(tx, record);
  return record;
}

/**
 * Records the removal of everything in these slots, which the caller has locked, because the slots are about to be
 * deleted.
 */
export function recordRemovals(tx: Tx, caller: Caller, place: WorkspacePlace, slots: readonly FilledSlot[]): void {
  const removals = slots.map((slot) =>
    nextRecord(caller, place, slot, { action: 'undeploy', releaseId: slot.releaseId }),
  );
  if (removals.length === 0) return;
  tx.write(records(removals));
  for (const record of removals) recordDeployment(tx, record);
}

/** One text for any number of rows: a deleted app may be deployed in many environments. */
const records = bulkInsertOf('deployments', {
  id: 'text',
  orgId: 'text',
  workspaceId: 'text',
  environmentId: 'text',
  appId: 'text',
  number: 'int',
  releaseId: 'text',
  previousReleaseId: 'text',
  action: 'text',
  deployedBy: 'text',
  deployedAt: 'timestamptz',
});

/**
 * Id and time are created here, under the lock of the slot: on one node they rise along the chain. The order of the
 * chain is always that of `number`.
 */
const nextRecord = (
  caller: Caller,
  { orgId, workspaceId }: WorkspacePlace,
  { environmentId, appId, releaseId: previousReleaseId, lastNumber }: Slot,
  change: { action: DeploymentAction; releaseId: string },
): Deployment => ({
  id: newId('deployment'),
  orgId,
  workspaceId,
  environmentId,
  appId,
  number: lastNumber + 1,
  previousReleaseId,
  ...change,
  deployedBy: caller.principal.userId,
  deployedAt: new Date(),
});

function recordDeployment(tx: Tx, record: Deployment): void {
  const { id, orgId, workspaceId, appId } = record;
  const { activity, event } = recordedAs[record.action as DeploymentAction];
  const data = {
    environment_id: record.environmentId,
    app_id: appId,
    release_id: record.releaseId,
    previous_release_id: record.previousReleaseId,
    action: record.action,
    number: record.number,
  };
  // the verbs are those of the action, not of the row
  const place = { orgId, workspaceId, environmentId: record.environmentId, appId };
  tx.audit({ ...place, action: activity, resourceType: 'deployment', resourceId: id, metadata: data });
  emitChange(tx, event, 'deployment', { id, ...place }, data);
}
