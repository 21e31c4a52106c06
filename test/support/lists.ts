import { getNamedType, getNullableType, isCompositeType, isListType, isObjectType } from 'graphql';
import type { CompiledOperation } from '../../rest/operation.ts';
import type { TestApp } from './app.ts';
import { operations, pathVariables, routeOf } from './operations.ts';
import { cloneRows, inTransaction } from './rows.ts';
import type { World } from './world.ts';

/** A route that answers a list. */
export interface ListRoute {
  operation: CompiledOperation;
  /** Key of the array in the answer. */
  array: string;
  /** It takes `cursor` and `limit`. */
  isPaged: boolean;
}

interface RowSource {
  table: string;
  /** Foreign key that tells the rows of the list apart, where it is not `id`. */
  fresh?: string;
  /** Column by which the list is scoped -> id of the world. */
  scope?: Record<string, (world: World) => string>;
  /** Condition on a row `t` that the list has. */
  where?: string;
  /** Columns in which the rows of the list differ from the one that is copied. */
  set?: () => Record<string, unknown>;
}

/** Lists of artifacts do not have their old versions. */
const heads: RowSource = { table: 'artifacts', where: 't.is_latest and t.deleted_at is null' };

const ofNoEndUser: RowSource = { table: 'connections', fresh: 'tool_instance_id', where: 't.end_user_id is null' };

const livingWorkspaces: RowSource = { table: 'workspaces', where: 't.deleted_at is null' };
const goneToday = () => ({ deleted_at: new Date().toISOString() });

/**
 * Where the rows of a list are kept, when that is not a table named like the array, scoped by the variables of the
 * path. THE place to add a list whose rows the suites cannot find.
 */
const sources: Record<string, RowSource> = {
  'GET /v1/users': {
    table: 'workspace_members',
    fresh: 'user_id',
    scope: { workspace_id: ({ ids }) => ids.workspace_id! },
  },
  'GET /v1/orgs': {
    table: 'organization_members',
    fresh: 'org_id',
    scope: { user_id: ({ accounts }) => accounts.owner.userId },
  },
  'GET /v1/notifications': { table: 'notifications', scope: { recipient_id: ({ accounts }) => accounts.owner.userId } },
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/artifacts': heads,
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/threads/{thread_id}/artifacts': heads,
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/deleted-artifacts': {
    ...heads,
    set: goneToday,
  },
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/deleted-artifacts': { ...heads, set: goneToday },
  'GET /v1/orgs/{org_id}/workspaces': livingWorkspaces,
  'GET /v1/orgs/{org_id}/deleted-workspaces': { ...livingWorkspaces, set: goneToday },
  'GET /v1/orgs/{org_id}/model-catalog': { table: 'logical_models', fresh: 'logical_model_id' },
  'GET /v1/orgs/{org_id}/provider-accounts': { table: 'provider_accounts' },
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances': { table: 'tool_instances' },
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/model-entitlements': { table: 'model_entitlements' },
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/connections': ofNoEndUser,
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/connections': ofNoEndUser,
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances/{instance_id}/end-user-connections': {
    table: 'connections',
    where: 't.end_user_id is not null',
    scope: { tool_instance_id: ({ ids }) => ids.instance_id! },
  },
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/executions': { table: 'executions', fresh: 'execution_id' },
  'GET /v1/orgs/{org_id}/api-tokens': {
    table: 'api_tokens',
    scope: {
      org_id: ({ ids }) => ids.org_id!,
      created_by_user_id: ({ accounts }) => accounts.owner.userId,
      token_type: () => 'pat',
    },
  },
  'GET /v1/orgs/{org_id}/api-tokens/admin': { table: 'api_tokens' },
  'GET /v1/orgs/{org_id}/apps/{app_id}/tokens': { table: 'api_tokens' },
  'GET /v1/orgs/{org_id}/application-grants': { table: 'oauth_grants' },
  'GET /v1/orgs/{org_id}/members': { table: 'organization_members', fresh: 'user_id' },
  // copies of the viewer, who has no factor
  'GET /v1/orgs/{org_id}/members-without-factor': { table: 'organization_members', fresh: 'user_id' },
  'GET /v1/orgs/{org_id}/workspaces/{workspace_id}/members': { table: 'workspace_members', fresh: 'user_id' },
};

function listOf(operation: CompiledOperation): ListRoute[] {
  const { response, type } = operation;
  if (type !== 'query' || !response.shape) return [];
  // one thing with lists of its own, such as a model with its targets, is no list
  const { type: shown } = response.shape;
  if (!isObjectType(shown) || !('nodes' in shown.getFields())) return [];
  const list = response.shape.fields.find(
    ({ type: of }) => of && isListType(getNullableType(of)) && isCompositeType(getNamedType(of)),
  );
  const isPaged = operation.parameters.some(({ name }) => name === 'cursor');
  return list ? [{ operation, array: list.key, isPaged }] : [];
}

/** Lists that grow when they are read, because that is recorded: test/insight/activity reads them. */
const growing = new Set(['activities']);

/** Every route that answers a list of objects. */
export const listRoutes: readonly ListRoute[] = operations.flatMap(listOf).filter(({ array }) => !growing.has(array));

/** Rows that were added to a list. */
export interface AddedRows {
  table: string;
  /** Row ids, in the order in which they were made. */
  rowIds: string[];
  /** What the items of the list are known by: the row's id, or the foreign key that tells them apart. */
  itemIds: string[];
}

/** Adds rows to a list, all in one transaction: they share their timestamps. */
export async function addRows(
  app: TestApp,
  world: World,
  { operation, array }: ListRoute,
  count: number,
): Promise<AddedRows> {
  const { pool } = app.database;
  const source = sources[routeOf(operation)] ?? { table: array };
  const columns = await columnsOf(app, source.table);
  if (columns.length === 0)
    throw new Error(
      `There is no table '${source.table}' for ${routeOf(operation)}: say in test/support/lists.ts where its rows are.`,
    );
  const scope =
    source.scope ??
    Object.fromEntries(pathVariables(operation.path).map((name) => [name, ({ ids }: World) => ids[name]!]));
  const used = Object.entries(scope).filter(([column]) => columns.includes(column));
  const conditions = used.map(([column], index) => `t.${column} = $${index + 1}`);
  const where = [...conditions, source.where ?? 'true'].join(' and ');
  const values = used.map(([, id]) => id(world));
  return inTransaction(pool, async (db) => {
    const rowIds = await cloneRows(db, source.table, count, {
      where,
      values,
      fresh: source.fresh ? [source.fresh] : [],
      set: source.set?.() ?? {},
    });
    const { rows } = await db.query<{ item: string }>(
      `select ${source.fresh ?? 'id'} as item from ${source.table} where id = any($1) order by array_position($1, id)`,
      [rowIds],
    );
    return { table: source.table, rowIds, itemIds: rows.map(({ item }) => item) };
  });
}

/** Deletes something in each way that can be restored: a world has nothing that is deleted. */
export async function addDeleted(app: TestApp, world: World): Promise<void> {
  for (const list of listRoutes) if (list.operation.path.includes('/deleted-')) await addRows(app, world, list, 1);
}

async function columnsOf(app: TestApp, table: string): Promise<string[]> {
  const { rows } = await app.database.pool.query<{ name: string }>(
    `select column_name as name from information_schema.columns where table_schema = 'public' and table_name = $1`,
    [table],
  );
  return rows.map(({ name }) => name);
}

/** The ids of an answer's items: the values of the one `…_id` whose values are those of the rows. */
export function itemIdsOf(items: readonly Record<string, unknown>[], among: ReadonlySet<string>): string[] {
  return items.flatMap((item) =>
    Object.values(item)
      .filter((value): value is string => typeof value === 'string' && among.has(value))
      .slice(0, 1),
  );
}
