import type { Checked, PlacePart, WorkspacePlace } from '../kernel/checked-place.ts';
import { type Place, placeOfRow } from '../kernel/place.ts';
import type { Permission } from '../kernel/resources.ts';
import type { RootPlace } from '../kernel/root-place.ts';
import type { Context } from './context.ts';
import { appArgs, appNamespaceArgs, namespaceArgs, organizationArgs, workspaceArgs } from './place-args.ts';
import type { Requirement } from './plugins/access-plugin.ts';
import { inside } from './row-places.ts';

/** A row in an organization, and perhaps in a workspace and a part of it. */
export interface PlacedRow extends Place {
  id: string;
  orgId: string;
  workspaceId?: string | null;
}

/** A row that is the parent of others. An organization has no parent itself. */
export interface ParentRow {
  id: string;
  orgId?: string;
  workspaceId?: string;
}

/** How a type is the parent of others. */
export interface ParentKind {
  /** The arguments that identify it. */
  args: (organization?: string) => ReturnType<typeof organizationArgs>;
  /** What a field of the parent requires of its caller. */
  authorize: (permission: Permission) => Requirement;
  /** What a root field requires that takes the parent's identifiers. */
  authorizeRoot: (permission: Permission) => Requirement;
  ofRoot: (root: RootPlace) => Checked<object>;
  ofRow: (row: ParentRow) => Checked<object>;
  /** Requires the permission in the place of a row below it. @throws FORBIDDEN, RESOURCE_NOT_FOUND */
  demand: (context: Context, permission: Permission, row: PlacedRow) => unknown;
}

/** @throws Error for a row without this identifier */
function named(row: { id: string }, what: string, id: string | null | undefined): string {
  if (typeof id !== 'string') throw new Error(`'${row.id}' names no ${what}.`);
  return id;
}

const workspaceOf = (row: ParentRow | PlacedRow): WorkspacePlace => ({
  orgId: named(row, 'organization', row.orgId),
  workspaceId: named(row, 'workspace', row.workspaceId),
});

const inOrganization = (organization: Permission): Requirement => ({ organization });
const inWorkspace = (workspace: Permission): Requirement => ({ workspace });

const demandInWorkspace: ParentKind['demand'] = ({ caller, services }, permission, row) => {
  const { orgId, workspaceId } = workspaceOf(row);
  return services.access.requireWorkspace(caller, orgId, workspaceId, permission, placeOfRow(row));
};

/** A part of a workspace. */
const partKind = (part: PlacePart, args: ParentKind['args']): ParentKind => ({
  args,
  authorize: inWorkspace,
  authorizeRoot: (workspace) => ({ workspace, in: part }),
  ofRoot: (root) => root[part],
  ofRow: (row) => inside[part]({ ...workspaceOf(row), id: row.id }),
  demand: demandInWorkspace,
});

const kinds: Readonly<Record<string, ParentKind>> = {
  Organization: {
    args: organizationArgs,
    authorize: inOrganization,
    authorizeRoot: inOrganization,
    ofRoot: ({ organization }) => organization,
    ofRow: inside.organization,
    demand: ({ caller, services }, permission, row) =>
      services.access.requireOrganization(caller, row.orgId, permission, {
        ...placeOfRow(row),
        workspaceId: row.workspaceId,
      }),
  },
  Workspace: {
    args: workspaceArgs,
    authorize: inWorkspace,
    authorizeRoot: inWorkspace,
    ofRoot: ({ workspace }) => workspace,
    ofRow: (row) => inside.workspace({ orgId: named(row, 'organization', row.orgId), id: row.id }),
    demand: demandInWorkspace,
  },
  Namespace: partKind('namespace', namespaceArgs),
  App: partKind('app', appArgs),
};

/** Of rows that are in an app and in a namespace: no type is their only parent. */
export const appInNamespace: ParentKind = {
  args: appNamespaceArgs,
  authorize: inWorkspace,
  authorizeRoot: (workspace) => ({ workspace, in: ['app', 'namespace'] }),
  ofRoot: (root) => root.appNamespace,
  ofRow: (row) => {
    throw new Error(`'${row.id}' alone has no rows that are in an app and in a namespace.`);
  },
  demand: demandInWorkspace,
};

/** @throws Error for a type that cannot be a parent */
export function parentKindOf(typeName: string): ParentKind {
  const kind = kinds[typeName];
  if (!kind) throw new Error(`Nothing can be read below a '${typeName}': src/graphql/parent-kinds.ts knows its place.`);
  return kind;
}
