import type { ActivityEntry } from '../../data/activity.ts';
import { declarationOf, type PlaceKind } from '../../kernel/resources.ts';
import type { Context } from '../context.ts';

/** How a root field appears in the audit trail. */
export interface ActivityLabel extends Pick<ActivityEntry, 'action' | 'resourceType' | 'field'> {
  /** The resolver records successes itself, because only it knows what it read. */
  byResolver?: boolean;
  /** The service records both successes and failures: until it has looked at the input, nobody is known. */
  byService?: boolean;
}

/** The ids in the arguments of a root field, for the record of the operation. */
export function entryOf(label: ActivityLabel, caller: Context['anyCaller'], args: object): ActivityEntry {
  const ids = args as Partial<Record<string, string>>;
  const { orgId, workspaceId, namespaceId, environmentId, appId, id } = ids;
  const { action, resourceType, field } = label;
  // resources that are places themselves
  const own = (kind: PlaceKind) => (resourceType === kind ? id : undefined);
  // a part of a place that is no resource, such as its storage or its rules
  const placeItself = resourceType === 'workspace' ? workspaceId : resourceType === 'organization' ? orgId : undefined;
  // no spread on the way of each request: Node 20 takes microseconds for a property after one
  return {
    action,
    resourceType,
    field,
    resourceId: id ?? ids[declarationOf(resourceType).knownBy ?? 'id'] ?? placeItself ?? null,
    orgId: orgId ?? own('organization') ?? caller.principal?.orgId ?? null,
    workspaceId: workspaceId ?? own('workspace') ?? null,
    namespaceId: namespaceId ?? own('namespace') ?? null,
    environmentId: environmentId ?? own('environment') ?? null,
    appId: appId ?? own('app') ?? null,
  };
}
