import type { Actor } from '../access/caller.ts';
import { atLeast, type Role } from '../access/permissions.ts';
import { Prisma, type Workspace } from '../generated/prisma/client.ts';
import type { Connection } from '../graphql/connections.ts';
import { NestedList, nestedRow, type PageArgs, type RequestMemory } from '../graphql/nested-connection.ts';
import { columnsOf, filtersOf, keptCounts, type PageSource, selectList } from '../infra/pages.ts';
import type { ServiceDeps } from '../services.ts';

const columns = columnsOf(Object.values(Prisma.WorkspaceScalarFieldEnum));

/** All workspaces of an organization, for those who administer it. */
const all: PageSource<Workspace> = {
  from: 'workspaces t',
  columns,
  key: 't.id',
  lead: 't.org_id',
  order: 'desc',
  where: ['t.org_id between $1 and $1', 't.deleted_at is null'],
};

/** The workspaces of an organization that a user is a member of. */
const own: PageSource<Workspace> = {
  from: 'workspace_members m join workspaces t on t.id = m.workspace_id and t.org_id = m.org_id',
  columns,
  key: 'm.workspace_id',
  order: 'desc',
  where: ['m.org_id = $1', 'm.user_id = $2', 't.deleted_at is null'],
};

const byId: PageSource<Workspace> = { ...all, where: [...all.where, 't.id = $2'] };

const SELECT = `select ${selectList(columns)} from workspaces t`;
const BY_ID = `${SELECT} where t.org_id = $1 and t.id = $2 and t.deleted_at is null`;
const ANYWHERE = `${SELECT} where t.id = $1 and t.deleted_at is null`;

/** Reads of workspaces. Written by hand because they are the hottest: the tests hold them against Prisma's rows. */
export class WorkspaceReads {
  readonly #deps: ServiceDeps;
  readonly #all: NestedList<Workspace>;
  readonly #own: NestedList<Workspace>;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#all = new NestedList(deps, 'workspaces', all, (parents) =>
      keptCounts(
        deps.sql,
        parents.map(([orgId]) => orgId!),
        'workspace',
      ),
    );
    this.#own = new NestedList(deps, 'own_workspaces', own);
  }

  /** A workspace that is not deleted; `null` when there is none in this organization. */
  async find(orgId: string, id: string): Promise<Workspace | null> {
    const [row] = await this.#deps.sql.read<Workspace>(BY_ID, [orgId, id]);
    return row ?? null;
  }

  /** The same, read together with all that are asked for in this request. */
  async nested(memory: RequestMemory, orgId: string, id: string): Promise<Workspace | null> {
    return nestedRow(memory, this.#deps.sql, 'workspace', byId, [orgId, id]);
  }

  /** A workspace of any organization: whoever asks has to check. */
  async findAnywhere(id: string): Promise<Workspace | null> {
    const [row] = await this.#deps.sql.read<Workspace>(ANYWHERE, [id]);
    return row ?? null;
  }

  /**
   * What the actor may read of an organization's workspaces, newest first. With a `memory` the page is read together with those of
   * all organizations that are asked for in this request.
   */
  async page(
    actor: Actor,
    role: Role | null,
    orgId: string,
    args: PageArgs,
    memory?: RequestMemory,
  ): Promise<Connection<Workspace>> {
    const seesAll = role !== null && atLeast(role, 'admin');
    const list = seesAll ? this.#all : this.#own;
    const parent = seesAll ? [orgId] : [orgId, actor.principal.userId];
    const filters = filtersOf({ 't.id = any(?)': this.#deps.access.visibleWorkspaces(actor) });
    return memory ? list.nested(memory, parent, args, filters) : list.page(parent, args, filters);
  }
}
