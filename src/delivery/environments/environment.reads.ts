import type { ServiceDeps } from '../../access/service-deps.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import type { VersionedRow } from '../../data/versioned-rows.ts';
import { type Environment as EnvironmentRow, Prisma } from '../../generated/prisma/client.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';

/** An environment with its deployed releases, by app id. */
export interface Environment extends EnvironmentRow {
  activeDeployments: Record<string, string>;
}

/** The arguments of a list of environments. */
export interface EnvironmentListArgs extends PageArgs {
  status?: string | null;
}

/**
 * SQL over the row `t`. Deployed releases are part of an environment, so its deployment records count (see the
 * migration).
 */
const VERSION = `t.resource_version +
  (select coalesce(sum(s.last_number), 0)::int from environment_slots s where s.environment_id = t.id)`;

/** An environment whose version is expected. */
export const versionedEnvironment = (id: string): VersionedRow<'environments'> => ({
  table: 'environments',
  key: { id },
  version: VERSION,
});

/** The environments of a workspace, newest first. */
export const environmentReads = (deps: ServiceDeps): Reads<Environment, WorkspacePlace, EnvironmentListArgs> =>
  new Reads(deps, {
    kind: 'environment',
    from: 'environments',
    columns: {
      ...columnsOf(Object.values(Prisma.EnvironmentScalarFieldEnum)),
      resourceVersion: VERSION,
      // part of the row's own statement, so that the number of statements does not depend on the size of the page
      activeDeployments: `(select coalesce(jsonb_object_agg(s.app_id, s.release_id), '{}') from environment_slots s
        where s.environment_id = t.id and s.release_id is not null)`,
    },
    below: ['orgId', 'workspaceId'],
    filters: ({ status }) => ({ 't.status = ?': status }),
  });
