import type { Place } from '../access/place.ts';
import type { Tx } from './change.ts';
import type { IdKind } from './ids.ts';

/** Where a changed row belongs; its namespace, environment and app too, where it has such. */
interface ChangedRow extends Place {
  id: string;
  orgId: string;
  /** Absent or `null` for what belongs to the organization as a whole. */
  workspaceId?: string | null;
}

/** What can be done to a resource (defaults §9), and how its event says that it happened (defaults §10). */
const happened = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
  destroy: 'destroyed',
  restore: 'restored',
  rotate: 'rotated',
  refresh: 'refreshed',
  revoke: 'revoked',
} as const;

/** Writes what every change of such a row leaves behind: its activity record and the event `<kind>.created`, `<kind>.updated`, …. */
export function recordChange(
  tx: Tx,
  verb: keyof typeof happened,
  kind: IdKind | 'app_token',
  row: ChangedRow,
  metadata: Record<string, unknown> = {},
): void {
  const { id, orgId, workspaceId, appId } = row;
  tx.audit({ action: verb, resourceType: kind, resourceId: id, orgId, workspaceId, appId, metadata });
  // a namespace and an environment are places themselves
  const place: Place = {
    namespaceId: kind === 'namespace' ? id : row.namespaceId,
    environmentId: kind === 'environment' ? id : row.environmentId,
    appId: kind === 'app' ? id : appId,
  };
  tx.emit({ type: `${kind}.${happened[verb]}`, orgId, workspaceId, ...place, resourceType: kind, resourceId: id });
}
