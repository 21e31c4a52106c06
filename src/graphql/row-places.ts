import type {
  AppPlace,
  Checked,
  EnvironmentPlace,
  NamespacePlace,
  OrganizationPlace,
  WorkspacePlace,
} from '../kernel/checked-place.ts';
import { markChecked } from '../kernel/mark-checked.ts';

interface Identified {
  id: string;
}

/*
 * Objects of the graph were reached through a gate, and each of their fields asks for its own permission in the place
 * that they name: the places of their rows are checked.
 */

const inNamespace = ({ orgId, workspaceId, namespaceId }: NamespacePlace) => ({ orgId, workspaceId, namespaceId });

/** The place that a row itself is: the parent of its children. */
export const inside = {
  organization: ({ id }: Identified): Checked<OrganizationPlace> => markChecked({ orgId: id }),
  workspace: ({ orgId, id }: OrganizationPlace & Identified): Checked<WorkspacePlace> =>
    markChecked({ orgId, workspaceId: id }),
  namespace: ({ orgId, workspaceId, id }: WorkspacePlace & Identified): Checked<NamespacePlace> =>
    markChecked({ orgId, workspaceId, namespaceId: id }),
  thread: ({ id, ...place }: NamespacePlace & Identified): Checked<NamespacePlace & { threadId: string }> =>
    markChecked({ ...inNamespace(place), threadId: id }),
  chain: ({ rootArtifactId, ...place }: NamespacePlace & { rootArtifactId: string }) =>
    markChecked({ ...inNamespace(place), rootArtifactId }),
  app: ({ orgId, workspaceId, id }: WorkspacePlace & Identified): Checked<AppPlace> =>
    markChecked({ orgId, workspaceId, appId: id }),
  environment: ({ orgId, workspaceId, id }: WorkspacePlace & Identified): Checked<EnvironmentPlace> =>
    markChecked({ orgId, workspaceId, environmentId: id }),
  entity: ({ orgId, id }: OrganizationPlace & Identified): Checked<OrganizationPlace & { entityId: string }> =>
    markChecked({ orgId, entityId: id }),
  tool: ({ orgId, id }: OrganizationPlace & Identified): Checked<OrganizationPlace & { toolId: string }> =>
    markChecked({ orgId, toolId: id }),
  recipe: ({
    orgId,
    id,
  }: OrganizationPlace & Identified): Checked<OrganizationPlace & { organizationRecipeId: string }> =>
    markChecked({ orgId, organizationRecipeId: id }),
  webhook: ({ orgId, id }: OrganizationPlace & Identified): Checked<OrganizationPlace & { webhookId: string }> =>
    markChecked({ orgId, webhookId: id }),
  auditStream: ({
    orgId,
    id,
  }: OrganizationPlace & Identified): Checked<OrganizationPlace & { auditStreamId: string }> =>
    markChecked({ orgId, auditStreamId: id }),
  toolInstance: ({
    orgId,
    workspaceId,
    id,
  }: WorkspacePlace & Identified): Checked<WorkspacePlace & { toolInstanceId: string }> =>
    markChecked({ orgId, workspaceId, toolInstanceId: id }),
};

/** The place of the caller's own resources, wherever they are. */
export const anywhere: Checked<object> = markChecked({});
