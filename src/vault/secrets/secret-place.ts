import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Given } from '../../data/given.ts';
import type { Tx } from '../../data/tx.ts';
import type { Secret } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { invalidInput, notFound } from '../../kernel/errors.ts';
import { DEFAULT_NAMESPACE } from '../../kernel/place.ts';
import type { Permission } from '../../kernel/resources.ts';

type PlaceIds = 'workspaceId' | 'namespaceId' | 'environmentId';

/** The requested place of a secret. The namespace is given by its identifier or as `default`. */
export type PlaceInput = Given<Secret, PlaceIds>;

/**
 * Where a secret lives. `scope` is the most specific of the identifiers; a name is unique there. A namespace or
 * environment comes with its workspace. A secret of an environment may also name a namespace of the same workspace. It
 * then belongs to both: a token restricted to some namespaces or environments needs access to each.
 */
export interface SecretPlace extends Pick<Secret, PlaceIds> {
  scope: 'organization' | 'workspace' | 'namespace' | 'environment';
}

/**
 * Finds a place and requires a permission there. The identifiers must fit together: a namespace or environment of
 * another workspace counts as missing, like an unknown one, and so does one of a workspace that the caller cannot see.
 * @param path of the identifiers in the field's arguments, for errors: `['input']`
 * @throws RESOURCE_NOT_FOUND, FORBIDDEN, InputError for `default` without a workspace
 */
export async function findPlace(
  { access, sql }: ServiceDeps,
  caller: Caller,
  orgId: string,
  permission: Permission,
  input: PlaceInput,
  path: readonly string[],
): Promise<SecretPlace> {
  if (input.namespaceId === DEFAULT_NAMESPACE && !input.workspaceId)
    throw invalidInput([...path, 'namespaceId'], `'${DEFAULT_NAMESPACE}' needs a workspace`);
  const demand = (workspaceId: string) => access.requireWorkspace(caller, orgId, workspaceId, permission, input);
  if (input.workspaceId) await demand(input.workspaceId);
  let workspaceId = input.workspaceId ?? null;

  const within = async (kind: 'namespace' | 'environment', id: string): Promise<string> => {
    const table = `${kind}s`;
    const key = kind === 'namespace' && id === DEFAULT_NAMESPACE ? 'slug' : 'id';
    const [row] = await sql.read<{ id: string; workspaceId: string }>(
      `select id, workspace_id as "workspaceId" from ${table}
       where org_id = $1 and ${key} = $2 and workspace_id = coalesce($3, workspace_id)`,
      [orgId, id, workspaceId],
    );
    if (!row) throw notFound(kind, id);
    if (!workspaceId) {
      if (!(await access.workspaceRole(caller, orgId, row.workspaceId))) throw notFound(kind, id);
      await demand(row.workspaceId);
    }
    workspaceId = row.workspaceId;
    return row.id;
  };
  const environmentId = input.environmentId ? await within('environment', input.environmentId) : null;
  const namespaceId = input.namespaceId ? await within('namespace', input.namespaceId) : null;
  if (!workspaceId) await access.requireOrganization(caller, orgId, permission);
  const scope = environmentId ? 'environment' : namespaceId ? 'namespace' : workspaceId ? 'workspace' : 'organization';
  return { scope, workspaceId, namespaceId, environmentId };
}

/**
 * Locks the place until the transaction ends, so that nobody deletes it while a secret is put there. The change fails
 * if the place is gone.
 */
export function demandPlace(
  tx: Tx,
  { namespaceId, environmentId }: Pick<SecretPlace, 'namespaceId' | 'environmentId'>,
): void {
  if (namespaceId) tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId));
  if (environmentId)
    tx.demand('environments', { id: environmentId }, 'key share', () => notFound('environment', environmentId));
}
