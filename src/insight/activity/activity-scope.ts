import { namedColumns } from '../../data/activity.ts';
import type { PageSource } from '../../data/paging.ts';
import { columnsOf } from '../../data/paging.ts';
import { type Activity, Prisma } from '../../generated/prisma/client.ts';
import type { ActivityAction } from '../../kernel/actions.ts';

/** What records are listed and summed by, below an organization. */
export const scopeKinds = [
  'organization',
  'workspace',
  'app',
  'namespace',
  'environment',
  'token',
  'resource',
] as const;
export type ScopeKind = (typeof scopeKinds)[number];

/** The records of an organization that name something: perhaps only those of one user. */
export interface ActivityScope {
  orgId: string;
  kind: ScopeKind;
  /** The identifier of what the records name; that of the organization itself for all of it. */
  id: string;
  /** `null` for everybody. */
  userId: string | null;
}

/** The columns of a record `t` that identify a scope below its organization. */
export const scopeColumns: Readonly<Record<Exclude<ScopeKind, 'organization'>, string>> = {
  workspace: 't.workspace_id',
  app: 't.app_id',
  namespace: 't.namespace_id',
  environment: 't.environment_id',
  token: 't.token_id',
  resource: 't.resource_id',
};

/** The column of a record `t` that names a scope. */
export const columnOf = (kind: ScopeKind): string => (kind === 'organization' ? 't.org_id' : scopeColumns[kind]);

/** Kinds whose sums are also kept for each user, and without kinds of records. */
const broad: ReadonlySet<ScopeKind> = new Set(['organization', 'workspace', 'app']);

/** Whether there are sums of a scope. */
export const isSummed = ({ kind, userId }: ActivityScope): boolean => userId === null || broad.has(kind);

/** Whether there are also sums of all records of a scope, of each action, and of each type of resource. */
export const hasMargins = ({ kind, userId }: ActivityScope): boolean => userId === null && broad.has(kind);

/** What a list is of: the records of one of these, newest first, each with an index of its own. */
export type ListKind = Exclude<ScopeKind, 'namespace' | 'environment'> | 'user' | 'user in workspace';

/** What changes nothing. */
const READS: readonly ActivityAction[] = ['read', 'list', 'view'];

export const isRead = (action: string): boolean => READS.some((read) => read === action);

/**
 * The condition on records or their sums that leaves successful reads out. Without a parameter, so that PostgreSQL
 * knows how few records are left.
 */
export const withoutReadsOf = (alias: string): string =>
  `not (${alias}.success and ${alias}.action in (${READS.map((read) => `'${read}'`).join(', ')}))`;

/**
 * The columns of a record. What a refused request named is shown where it would be, although no list but the
 * organization's has it.
 */
export const COLUMNS = Object.fromEntries(
  Object.entries(columnsOf(Object.values(Prisma.ActivityScalarFieldEnum))).map(([property, column]) => {
    const name = column.slice('t.'.length);
    return [property, namedColumns.includes(name) ? `coalesce(${column}, t.named ->> '${name}')` : column];
  }),
) as Record<keyof Activity, string>;

function listBy(lead: string | null, ...others: readonly string[]): PageSource<Activity> {
  const is = (column: string, value: string) => `${column} between (select ${value}::text) and (select ${value}::text)`;
  const where = lead === null ? [is('t.org_id', '$1')] : ['t.org_id = (select $1::text)', is(lead, '$2')];
  return {
    from: 'activity t',
    columns: COLUMNS,
    key: '(t.timestamp, t.id)',
    keys: { 't.timestamp': 'timestamptz', 't.id': 'text' },
    lead: lead === null ? 't.org_id' : lead,
    order: 'desc',
    isPlannedOnce: true,
    where: [...where, ...others],
  };
}

/** The lists, by what they are of. `$1` is the organization, `$2` the identifier below it, `$3` the workspace. */
export const lists: Readonly<Record<ListKind, PageSource<Activity>>> = {
  organization: listBy(null),
  workspace: listBy(scopeColumns.workspace),
  app: listBy(scopeColumns.app),
  token: listBy(scopeColumns.token),
  resource: listBy(scopeColumns.resource),
  user: listBy('t.user_id'),
  'user in workspace': listBy('t.user_id', `${scopeColumns.workspace} = (select $3::text)`),
};

/** A list without successful reads. */
export const leavingReadsOut = (list: PageSource<Activity>): PageSource<Activity> => ({
  ...list,
  where: [...list.where, withoutReadsOf('t')],
});

/** The key of a record in a list. */
export const keyOfRecord = ({ timestamp, id }: Pick<Activity, 'timestamp' | 'id'>): string =>
  `${timestamp.toISOString()} ${id}`;
