import type { Actor } from '../access/caller.ts';
import { notFound } from '../core/errors.ts';
import type { VersionedRow } from '../data/expectation.ts';
import { NestedList, nestedRow } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { columnsOf, type Filter, filtersOf, type PageSource, readPage } from '../data/pages.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type Environment as EnvironmentRow, Prisma } from '../generated/prisma/client.ts';

/** An environment with what is deployed in it now: the release of each app, by the app's id. */
export interface Environment extends EnvironmentRow {
  activeDeployments: Record<string, string>;
}

/** A workspace. */
export interface WorkspacePlace {
  orgId: string;
  workspaceId: string;
}

/** The arguments of a list of environments. */
export interface EnvironmentListArgs extends PageArgs {
  status?: string | null;
}

/** SQL over the row `t`: what is deployed is part of an environment, so that its records count (see the migration). */
const VERSION = `t.resource_version + (select coalesce(sum(s.last_number), 0)::int from environment_slots s where s.environment_id = t.id)`;

/** An environment whose version is expected. */
export const versionedEnvironment = (id: string): VersionedRow => ({
  table: 'environments',
  key: { id },
  version: VERSION,
});

const source: PageSource<Environment> = {
  from: 'environments t',
  columns: {
    ...columnsOf(Object.values(Prisma.EnvironmentScalarFieldEnum)),
    resourceVersion: VERSION,
    // part of the row's own statement: what a page costs does not depend on how many environments are on it
    activeDeployments: `(select coalesce(jsonb_object_agg(s.app_id, s.release_id), '{}') from environment_slots s
      where s.environment_id = t.id and s.release_id is not null)`,
  },
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1', 't.workspace_id = $2'],
};
const one: PageSource<Environment> = { ...source, where: [...source.where, 't.id = $3'] };
const anywhere: PageSource<Environment> = { ...source, where: ['t.id = $1'] };

/** Reads of environments, newest first. What belongs to another workspace is missing; a restricted token finds only its own in lists. */
export class EnvironmentReads {
  readonly #deps: ServiceDeps;
  readonly #list: NestedList<Environment>;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#list = new NestedList(deps, 'environments', source);
  }

  async page(
    actor: Actor,
    { orgId, workspaceId }: WorkspacePlace,
    args: EnvironmentListArgs,
  ): Promise<Page<Environment>> {
    return this.#list.page([orgId, workspaceId], args, this.#filters(actor, args));
  }

  /** The same list below a workspace of a list. */
  async nestedPage(
    context: RequestCache & { actor: Actor },
    { orgId, workspaceId }: WorkspacePlace,
    args: EnvironmentListArgs,
  ): Promise<Page<Environment>> {
    return this.#list.nested(context, [orgId, workspaceId], args, this.#filters(context.actor, args));
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get({ orgId, workspaceId }: WorkspacePlace, id: string): Promise<Environment> {
    const { rows } = await readPage(this.#deps.sql, one, { values: [orgId, workspaceId, id], after: null, limit: 1 });
    if (!rows[0]) throw notFound('environment', id);
    return rows[0];
  }

  /** One of the workspace, read together with all that are asked for in this request; `null` when there is none. */
  async nested(memory: RequestCache, { orgId, workspaceId }: WorkspacePlace, id: string): Promise<Environment | null> {
    return nestedRow(memory, this.#deps.sql, 'environment', one, [orgId, workspaceId, id]);
  }

  /** An environment of any workspace: whoever asks has to check. */
  async findAnywhere(id: string): Promise<Environment | null> {
    const { rows } = await readPage(this.#deps.sql, anywhere, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }

  #filters(actor: Actor, { status }: EnvironmentListArgs): Filter[] {
    return filtersOf({ 't.status = ?': status, 't.id = any(?)': this.#deps.access.visibleEnvironments(actor) });
  }
}
