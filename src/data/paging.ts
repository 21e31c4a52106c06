import { snakeCase } from '../kernel/snake-case.ts';
import { MARK } from '../platform/postgres/plain-read.ts';
import type { RoutedReads } from './sql.ts';

/** A list with keyset pagination. Column and table names come from code only. */
export interface PageSource<Row> {
  /** Table expression with its alias `t`, joins included: `workspaces t`. */
  from: string;
  /** Columns to read, by property. */
  columns: Readonly<Record<keyof Row & string, string>>;
  /** Column of the key; ids sort by time. For a key of several columns, the row of them. */
  key: string;
  /** The columns of such a key, with their types. Its value is their texts, with a space between them. */
  keys?: Readonly<Record<string, string>>;
  /**
   * The column before the key in the list's index, with its order. Its condition is written as a range of one value
   * (`between $1 and $1`).
   */
  lead?: string;
  order: 'asc' | 'desc';
  /**
   * Whether the statement of a page is planned once for each connection and not for each request, as it is where
   * PostgreSQL expects the same of all values: planning a page of a partitioned table costs three times what reading it
   * does. Conditions then have their values as `(select $1::text)`, of which PostgreSQL expects nothing.
   */
  isPlannedOnce?: true;
  /** Conditions with `$1`, `$2`… for the values of the scope and the filters, in the order of `values`. */
  where: readonly string[];
  /**
   * More rows of the list, from elsewhere: they are merged in the order of the key. Each part is limited by itself, so
   * that each walks its own index.
   */
  also?: PageSource<Row>;
}

export interface PageRequest {
  /** Values of the conditions. */
  values: readonly unknown[];
  /** Key of the last row of the previous page; `null` for the first page. */
  after: string | null;
  limit: number;
  /** Default: whether there are more rows is read with them. `false`: `hasMore` is always false. */
  looksFurther?: boolean;
  /** A statement that counts the rows of one parent, with the same parameters: read with the page. */
  count?: string | undefined;
}

/** A condition that a caller may add to a list, with `?` for its value: `t.status = ?`. */
export interface Filter {
  where: string;
  value: unknown;
}

/** The filters whose values were given, by their conditions. */
export const filtersOf = (given: Readonly<Record<string, unknown>>): Filter[] =>
  Object.entries(given).flatMap(([where, value]) => (value === null || value === undefined ? [] : { where, value }));

/** `%text%`, with the metacharacters of `like` escaped. */
export const containing = (text: string) => `%${text.replaceAll(/[\\%_]/g, (c) => `\\${c}`)}%`;

/**
 * The source with additional conditions. The statement contains only the given ones, so that PostgreSQL plans for
 * exactly these. Their values follow those of the source's own conditions, of which there are `taken`.
 */
export function withFilters<Row>(source: PageSource<Row>, filters: readonly Filter[], taken: number): PageSource<Row> {
  if (filters.length === 0) return source;
  const conditions = filters.map(({ where }, index) => where.replaceAll('?', `$${taken + index + 1}`));
  const { also } = source;
  return {
    ...source,
    where: [...source.where, ...conditions],
    ...(also && { also: withFilters(also, filters, taken) }),
  };
}

/** What names the parent of a nested list, tenant first: `[orgId, workspaceId]`. */
export type ParentKey = readonly string[];

export interface Slice<Row> {
  rows: Row[];
  hasMore: boolean;
  /** The count, if it was read with the page. */
  total?: number;
}

/** `t.org_id as "orgId", …`: the columns of a statement, by property. */
export const selectList = (columns: Readonly<Record<string, string>>) =>
  Object.entries(columns)
    .map(([property, column]) => `${column} as "${property}"`)
    .join(', ');

const texts = new WeakMap<object, Map<string, string>>();

/** The text of a statement of a source, built once per form. */
function textOf<Row>(source: PageSource<Row>, form: string, write: () => string): string {
  const known = texts.get(source) ?? new Map<string, string>();
  const text = known.get(form) ?? write();
  texts.set(source, known.set(form, text));
  return text;
}

/** The condition on the key of the previous page, whose parameter has this number; none on the first page. */
function behind<Row>(source: PageSource<Row>, after: string | null, number: number): string[] {
  if (after === null) return [];
  const { key, keys, order } = source;
  const parts = Object.values(keys ?? {}).map((type, index) =>
    valueIn(source, `split_part($${number}, ' ', ${index + 1})::${type}`),
  );
  return [`${key} ${order === 'desc' ? '<' : '>'} ${keys ? `(${parts.join(', ')})` : valueIn(source, `$${number}`)}`];
}

/** A value in the statement of a page. */
const valueIn = <Row>({ isPlannedOnce }: PageSource<Row>, value: string): string =>
  isPlannedOnce ? `(select ${value})` : value;

const whereOf = (conditions: readonly string[]) => (conditions.length > 0 ? ` where ${conditions.join(' and ')}` : '');

const orderOf = <Row>({ lead, key, keys, order }: PageSource<Row>) =>
  [...(lead ? [lead] : []), ...(keys ? Object.keys(keys) : [key]).map((column) => `${column} ${order}`)].join(', ');

type ConditionsOf<Row> = (part: PageSource<Row>) => readonly string[];

/** The statement of one page of a source alone. @param others columns before and after its own */
function partOf<Row>(
  source: PageSource<Row>,
  conditions: ConditionsOf<Row>,
  limit: string,
  others: readonly [before: string, after: string],
): string {
  const [before, after] = others;
  return `select ${before}${selectList(source.columns)}${after} from ${source.from}${whereOf(conditions(source))}
    order by ${orderOf(source)} limit ${limit}`;
}

/** The statement of one page of a source and of what it is merged with, with the key of each row. */
function keyedPage<Row>(source: PageSource<Row>, conditions: ConditionsOf<Row>, limit: string): string {
  const keyed = (part: PageSource<Row>) => partOf(part, conditions, limit, [`${part.key} as "$key", `, '']);
  const { also, order } = source;
  if (!also) return keyed(source);
  return `select * from ((${keyed(source)}) union all (${keyed(also)})) a order by a."$key" ${order} limit ${limit}`;
}

/** `u."id", u."name"` */
const propertiesOf = <Row>({ columns }: PageSource<Row>, alias: string) =>
  Object.keys(columns)
    .map((property) => `${alias}."${property}"`)
    .join(', ');

/**
 * Reads one page. The condition on the key is present only with a cursor, so that PostgreSQL walks the index from there
 * and the cost does not grow with the table or the depth.
 */
export async function readPage<Row extends object>(
  sql: RoutedReads,
  source: PageSource<Row>,
  { values: given, after, limit, looksFurther = true, count }: PageRequest,
): Promise<Slice<Row>> {
  const values = [...given, ...(after === null ? [] : [after]), looksFurther ? limit + 1 : limit];
  const form = `${after === null ? 'first page' : 'page'} ${count ?? ''}`;
  const text = textOf(source, form, () => {
    const conditions = (part: PageSource<Row>) => [...part.where, ...behind(part, after, given.length + 1)];
    const total = count === undefined ? '' : `, (${count}) as "${MARK}"`;
    const max = valueIn(source, `$${values.length}::int`);
    if (!source.also) return partOf(source, conditions, max, ['', total]);
    return `select ${propertiesOf(source, 'u')}${total} from (${keyedPage(source, conditions, max)}) u
    order by u."$key" ${source.order}`;
  });
  const { rows, marks } = await sql.readMarked<Row, number>(text, values);
  const hasMore = rows.length > limit;
  const [total] = marks;
  return { rows: hasMore ? rows.slice(0, limit) : rows, hasMore, ...(total !== undefined && { total }) };
}

/** The columns that name the parents of a nested list: one array per column, for `unnest`. */
const transposed = (parents: readonly ParentKey[]): unknown[] =>
  (parents[0] ?? []).map((_, column) => parents.map((key) => key[column]));

/**
 * `unnest($1::text[], $2::text[]) with ordinality p(k1, k2, at)`, and the conditions with `p.k1` and `p.k2` for `$1`
 * and `$2`.
 */
function eachParent(parents: readonly ParentKey[], where: readonly string[]): { from: string; where: string[] } {
  const numbers = (parents[0] ?? []).map((_, index) => index + 1);
  const arrays = numbers.map((n) => `$${n}::text[]`).join(', ');
  return {
    from: `unnest(${arrays}) with ordinality p(${numbers.map((n) => `k${n}`).join(', ')}, at)`,
    where: where.map((condition) =>
      condition.replaceAll(/\$(\d+)\b/g, (whole, n: string) => (Number(n) <= numbers.length ? `p.k${n}` : whole)),
    ),
  };
}

/**
 * The same page for many parents in one statement: the cost of a nested list does not depend on the number of parents.
 * The first values of `where` (`$1`, `$2`…) are the parent's key, those of `request` follow.
 */
export async function readPages<Row extends object>(
  sql: RoutedReads,
  source: PageSource<Row>,
  parents: readonly ParentKey[],
  request: PageRequest,
): Promise<Slice<Row>[]> {
  if (parents.length === 1)
    return [await readPage(sql, source, { ...request, values: [...parents[0]!, ...request.values] })];
  const { after, limit, looksFurther = true } = request;
  const given: unknown[] = [...transposed(parents), ...request.values];
  const values = [...given, ...(after === null ? [] : [after]), looksFurther ? limit + 1 : limit];
  const text = textOf(source, after === null ? 'first pages' : 'pages', () => {
    const conditions = (part: PageSource<Row>) => [
      ...eachParent(parents, part.where).where,
      ...behind(part, after, given.length + 1),
    ];
    const page = keyedPage(source, conditions, valueIn(source, `$${values.length}::int`));
    return `select p.at as "${MARK}", ${propertiesOf(source, 'r')} from ${eachParent(parents, []).from}
    cross join lateral (${page}) r order by p.at, r."$key" ${source.order}`;
  });
  const pages: Slice<Row>[] = parents.map(() => ({ rows: [], hasMore: false }));
  const { rows, marks } = await sql.readMarked<Row, string>(text, values);
  for (const [at, row] of rows.entries()) {
    const page = pages[Number(marks[at]) - 1]!;
    if (page.rows.length < limit) page.rows.push(row);
    else page.hasMore = true;
  }
  return pages;
}

/** Counts the matching rows for each of many parents, in one statement. */
export async function countPages<Row>(
  sql: RoutedReads,
  source: PageSource<Row>,
  parents: readonly ParentKey[],
  values: readonly unknown[],
): Promise<number[]> {
  if (parents.length === 1) return [await countRows(sql, source, [...parents[0]!, ...values])];
  const { from } = eachParent(parents, []);
  const count = countOf(source, (part) => eachParent(parents, part.where).where);
  const text = `select (${count}) as n from ${from} order by p.at`;
  return (await sql.read<{ n: number }>(text, [...transposed(parents), ...values])).map((row) => row.n);
}

/** Counts the matching rows now. For lists that stay small; see `resource_counts` for the others. */
export async function countRows<Row>(
  sql: RoutedReads,
  source: PageSource<Row>,
  values: readonly unknown[],
): Promise<number> {
  const text = textOf(source, 'count', () => countOf(source));
  const [row] = await sql.read<{ count: number }>(text, [...values]);
  return row?.count ?? 0;
}

/** The statement that counts the rows of a source, and of what it is merged with. */
export function countOf<Row>(source: PageSource<Row>, conditions: ConditionsOf<Row> = ({ where }) => where): string {
  const count = (of: PageSource<Row>) => `select count(*)::int from ${of.from}${whereOf(conditions(of))}`;
  return source.also ? `select (${count(source)}) + (${count(source.also)}) as count` : count(source);
}

/** The statement that reads the stored count of a tenant, `$1`. */
export const keptCountOf = (resource: string): string =>
  `select coalesce(sum(n), 0)::int from resource_counts where org_id = $1 and resource = '${resource}'`;

/** The stored row counts of some tenants: their cost does not grow with the table. */
export async function keptCounts(sql: RoutedReads, orgIds: readonly string[], resource: string): Promise<number[]> {
  const rows = await sql.read<{ orgId: string; n: number }>(
    `select org_id as "orgId", sum(n)::int as n from resource_counts
      where org_id = any($1::text[]) and resource = $2 group by org_id`,
    [orgIds, resource],
  );
  const counts = new Map(rows.map((row) => [row.orgId, row.n]));
  return orgIds.map((orgId) => counts.get(orgId) ?? 0);
}

/**
 * The statement that reads the stored count of a place: of the workspace or the app that is the last of the `columns`
 * that identify the parent.
 */
export const placeCountOf = (counter: string, columns: number): string =>
  `select coalesce(sum(n), 0)::int from place_counts
    where org_id = $1 and place_id = $${columns} and counter = '${counter}'`;

/** The stored row counts of some places. */
export async function placeCounts(sql: RoutedReads, parents: readonly ParentKey[], counter: string): Promise<number[]> {
  const rows = await sql.read<{ n: number }>(
    `select (select coalesce(sum(c.n), 0)::int from place_counts c
        where c.org_id = p.org_id and c.place_id = p.place_id and c.counter = $3) as n
      from unnest($1::text[], $2::text[]) with ordinality p(org_id, place_id, at) order by p.at`,
    [parents.map((key) => key[0]), parents.map((key) => key.at(-1)), counter],
  );
  return rows.map(({ n }) => n);
}

/** `{ orgId: 't.org_id', … }` for properties whose columns are their snake-case names. */
export function columnsOf<Property extends string>(
  properties: readonly Property[],
  alias = 't',
): Record<Property, string> {
  const column = (property: string) => `${alias}.${snakeCase(property)}`;
  return Object.fromEntries(properties.map((property) => [property, column(property)])) as Record<Property, string>;
}

/** The words of a line. */
export type Words<Line extends string> = Line extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Line;

/** Splits lines of names, with their type: `words('id orgId', 'createdBy createdAt')`. */
export const words = <Line extends string>(...lines: readonly Line[]): Words<Line>[] =>
  lines.flatMap((line) => line.split(' ') as Words<Line>[]);

/** `json_build_object('orgId', t.org_id, …)`: columns as one value, by property. */
export const jsonOf = (columns: Readonly<Record<string, string>>) =>
  `json_build_object(${Object.entries(columns)
    .map(([property, column]) => `'${property}', ${column}`)
    .join(', ')})`;
