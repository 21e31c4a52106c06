import type { Actor } from '../access/caller.ts';
import { atLeast, type Role } from '../access/permissions.ts';
import { Prisma, type Workspace } from '../generated/prisma/client.ts';
import { type Connection, connection } from '../graphql/connections.ts';
import { countRows, columnsOf, keptCount, type PageSource, readPage } from '../infra/pages.ts';
import type { ServiceDeps } from '../services.ts';

const columns = columnsOf(Object.values(Prisma.WorkspaceScalarFieldEnum));

/** All workspaces of an organization, for those who administer it. */
const all: PageSource<Workspace> = {
  from: 'workspaces t',
  columns,
  key: 't.id',
  order: 'desc',
  where: ['t.org_id = $1', 't.deleted_at is null'],
};

/** The workspaces of an organization that a user is a member of. */
const own: PageSource<Workspace> = {
  from: 'workspace_members m join workspaces t on t.id = m.workspace_id and t.org_id = m.org_id',
  columns,
  key: 'm.workspace_id',
  order: 'desc',
  where: ['m.org_id = $1', 'm.user_id = $2', 't.deleted_at is null'],
};

const BY_ID = `select ${Object.entries(columns)
  .map(([property, column]) => `${column} as "${property}"`)
  .join(', ')} from workspaces t where t.org_id = $1 and t.id = $2 and t.deleted_at is null`;

/** Reads of workspaces. Written by hand because they are the hottest: the tests hold them against Prisma's rows. */
export class WorkspaceReads {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /** A workspace that is not deleted; `null` when there is none in this organization. */
  async find(orgId: string, id: string): Promise<Workspace | null> {
    const [row] = await this.#deps.sql.read<Workspace>(BY_ID, [orgId, id]);
    return row ?? null;
  }

  /** What the actor may read of an organization's workspaces, newest first. */
  async page(actor: Actor, role: Role | null, page: { orgId: string; first: number; after?: string | null }): Promise<Connection<Workspace>> {
    const { sql, cursors } = this.#deps;
    const { orgId } = page;
    const seesAll = role !== null && atLeast(role, 'admin');
    const source = seesAll ? all : own;
    const values = seesAll ? [orgId] : [orgId, actor.principal.userId];
    const scope = { list: 'workspaces', filters: values };
    const after = cursors.decode(scope, page.after);
    const rows = await readPage(sql, source, { values, after, limit: page.first });
    const total = () => (seesAll ? keptCount(sql, orgId, 'workspace') : countRows(sql, source, values));
    return connection(cursors, scope, rows, after, total);
  }
}
