import type { QueryRunner } from '../../data/find-row.ts';
import { invalidInput } from '../../kernel/errors.ts';
import { reaches } from '../../tenancy/views.ts';

/** Where a preference holds: without an organization, everywhere. */
export interface PreferencePlace {
  orgId: string | null;
  workspaceId: string | null;
}

/** The same as it is given. */
export type GivenPlace = Partial<PreferencePlace>;

/**
 * The place of a preference at `at` of a list.
 * @throws InputError for a workspace without its organization
 */
export function placeOf({ orgId = null, workspaceId = null }: GivenPlace, list: string, at: number): PreferencePlace {
  if (workspaceId !== null && orgId === null)
    throw invalidInput(['input', list, at, 'orgId'], 'the organization of the workspace is missing');
  return { orgId, workspaceId };
}

/** @throws InputError for a place that its user cannot open */
export async function demandPlaces(
  tx: QueryRunner,
  userId: string,
  list: string,
  places: readonly PreferencePlace[],
): Promise<void> {
  const [wrong] = await tx.query<{ at: number; isWorkspace: boolean }>({
    text: `select (g.at - 1)::int as at, g.workspace_id is not null as "isWorkspace"
      from unnest($2::text[], $3::text[]) with ordinality g(org_id, workspace_id, at)
      where g.org_id is not null and not (${reaches('g.org_id', 'g.workspace_id', '$1')}
        and (g.workspace_id is null or exists (select from workspaces w
          where w.id = g.workspace_id and w.org_id = g.org_id and w.deleted_at is null)))
      order by g.at limit 1`,
    values: [userId, places.map(({ orgId }) => orgId), places.map(({ workspaceId }) => workspaceId)],
  });
  if (!wrong) return;
  const place = wrong.isWorkspace ? 'workspaceId' : 'orgId';
  throw invalidInput(
    ['input', list, wrong.at, place],
    `you do not belong to this ${wrong.isWorkspace ? 'workspace' : 'organization'}`,
  );
}
