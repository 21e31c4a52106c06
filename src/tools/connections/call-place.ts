import type { Checked, NamespacePlace, WorkspacePlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';

/** Whose connection is used: that of a namespace, which may be that of the workspace, or of the workspace. */
export type CallPlace = Checked<WorkspacePlace> | Checked<NamespacePlace>;

/**
 * The namespace whose connection is used: the one that is named, or that of the instance.
 * @throws RESOURCE_NOT_FOUND for an instance of another namespace
 */
export function namespaceOf(
  place: WorkspacePlace & { namespaceId?: string | null },
  instance: { id: string; namespaceId: string | null },
): string | null {
  const { namespaceId = null } = place;
  if (namespaceId === null) return instance.namespaceId;
  if (instance.namespaceId !== null && instance.namespaceId !== namespaceId)
    throw notFound('tool_instance', instance.id);
  return namespaceId;
}
