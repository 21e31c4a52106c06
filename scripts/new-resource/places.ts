import type { PlaceKind } from '../../src/kernel/resources.ts';

/** How something in a place of a kind is written. */
export interface PlaceStyle {
  /** The type of the place, and its property of a root field. */
  checked: string;
  root: string;
  /** The type above, and its module. */
  parent: string;
  module: string;
  /** The file of the parent's Prisma model. */
  prisma: string;
  /** The columns of the place, tenant first. */
  below: readonly string[];
  /** The function that adds the fields of the place, and the arguments of the place. */
  fields: string;
  args: string;
  /** What `authorize` is for a permission. */
  authorize: (permission: string) => string;
  /** The path of the place. */
  path: string;
  /** What a test makes first, below a workspace: its folder in paths, its id, and a body. */
  made: { folder: string; id: string; body: string } | null;
  /** The references that the fields of the place do not have yet. */
  refers: string | null;
  /** The table whose row must stay while something is created in it; `null` where rows only get a mark. */
  kept: string | null;
}

/** The kinds of places that a plain resource may be in. */
export const styles: { readonly [Kind in Exclude<PlaceKind, 'environment'>]: PlaceStyle } = {
  organization: {
    checked: 'OrganizationPlace',
    root: 'organization',
    parent: 'Organization',
    module: 'tenancy/organizations/organization.graph.ts',
    prisma: 'organizations.prisma',
    below: ['orgId'],
    fields: 'inOrganization',
    args: 'organizationArgs',
    authorize: (permission) => `{ organization: '${permission}' }`,
    path: '/v1/orgs/{org_id}',
    made: null,
    refers: null,
    kept: null,
  },
  workspace: {
    checked: 'WorkspacePlace',
    root: 'workspace',
    parent: 'Workspace',
    module: 'tenancy/workspaces/workspace.graph.ts',
    prisma: 'workspaces.prisma',
    below: ['orgId', 'workspaceId'],
    fields: 'inWorkspace',
    args: 'workspaceArgs',
    authorize: (permission) => `{ workspace: '${permission}' }`,
    path: '/v1/orgs/{org_id}/workspaces/{workspace_id}',
    made: null,
    refers: "workspaceId: 'workspace'",
    kept: null,
  },
  namespace: {
    checked: 'NamespacePlace',
    root: 'namespace',
    parent: 'Namespace',
    module: 'tenancy/namespaces/namespace.graph.ts',
    prisma: 'workspaces.prisma',
    below: ['orgId', 'workspaceId', 'namespaceId'],
    fields: 'inNamespace',
    args: 'namespaceArgs',
    authorize: (permission) => `{ workspace: '${permission}', in: 'namespace' }`,
    path: '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}',
    made: { folder: 'namespaces', id: 'namespace_id', body: "{ name: 'n', slug: 'n' }" },
    refers: null,
    kept: 'namespaces',
  },
  app: {
    checked: 'AppPlace',
    root: 'app',
    parent: 'App',
    module: 'tenancy/apps/app.graph.ts',
    prisma: 'apps.prisma',
    below: ['orgId', 'workspaceId', 'appId'],
    fields: 'inApp',
    args: 'appArgs',
    authorize: (permission) => `{ workspace: '${permission}', in: 'app' }`,
    path: '/v1/orgs/{org_id}/workspaces/{workspace_id}/apps/{app_id}',
    made: { folder: 'apps', id: 'app_id', body: "{ name: 'a' }" },
    refers: "appId: { kind: 'app', required: true }",
    kept: 'apps',
  },
};

/** A kind of place that a plain resource may be in. */
export type PlainPlace = keyof typeof styles;
