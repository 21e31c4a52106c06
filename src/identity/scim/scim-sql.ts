import { isUnstorable } from '../../kernel/constraints.ts';
import { badRequest } from './scim-error.ts';
import { attributeKey, type FilterValue, type Operator, parseFilter, type ScimFilter } from './scim-filter.ts';

/**
 * How an attribute is compared. `text`: without regard to case; `key`: the same, of a column that is kept so; `exact`;
 * `flag`; `time`; `member`: SQL that is true for the identifier `?`.
 */
export interface Compared {
  sql: string;
  as: 'text' | 'key' | 'exact' | 'flag' | 'time' | 'member';
}

export type Attributes = Readonly<Record<string, Compared>>;

/** A name as it is compared: two that look the same are one. */
export const folded = (text: string): string => text.normalize('NFKC').toLowerCase();

const invalid = (detail: string) => badRequest('invalidFilter', detail);

/**
 * The condition of a filter, with its values behind those that are there.
 * @throws ScimError `invalidFilter` for an attribute that cannot be filtered by, or a value of another type
 */
export function conditionOf(text: string, attributes: Attributes, values: unknown[]): string {
  return sqlOf(parseFilter(text), attributes, values);
}

function sqlOf(filter: ScimFilter, attributes: Attributes, values: unknown[]): string {
  if (filter.kind === 'not') return `not ${sqlOf(filter.part, attributes, values)}`;
  if (filter.kind === 'compare') return `coalesce(${comparison(filter, attributes, values)}, false)`;
  return `(${filter.parts.map((part) => sqlOf(part, attributes, values)).join(` ${filter.kind} `)})`;
}

function comparison(
  { attribute, operator, value }: Extract<ScimFilter, { kind: 'compare' }>,
  attributes: Attributes,
  values: unknown[],
): string {
  const known = Object.hasOwn(attributes, attribute) ? attributes[attribute]! : null;
  if (!known) throw invalid(`The service does not filter by '${attribute.slice(0, 80)}'.`);
  const { sql, as } = known;
  const parameter = (given: unknown, type: string) => `$${values.push(given)}::${type}`;
  if (as === 'member') {
    if (operator !== 'eq' || typeof value !== 'string') throw invalid(`'${attribute}' is compared with eq and a text.`);
    return sql.replace('?', parameter(storable(value), 'text'));
  }
  if (operator === 'pr') return as === 'flag' ? 'true' : `${sql} is not null`;
  if (value === null) return nullness(sql, operator);
  if (as === 'flag') return flag(sql, operator, value);
  if (as === 'time') return `${sql} ${orderOf(operator)} ${parameter(timeOf(value), 'timestamptz')}`;
  if (typeof value !== 'string') throw invalid(`'${attribute}' is compared with a text.`);
  const text = parameter(storable(as === 'key' ? folded(value) : value), 'text');
  return as === 'text' ? texts(`lower(${sql})`, operator, `lower(${text})`) : texts(sql, operator, text);
}

function nullness(sql: string, operator: Operator): string {
  if (operator === 'eq') return `${sql} is null`;
  if (operator === 'ne') return `${sql} is not null`;
  throw invalid('null is compared with eq or ne.');
}

function flag(sql: string, operator: Operator, value: FilterValue): string {
  // Entra ID writes these as texts
  const is = typeof value === 'string' ? { true: true, false: false }[value.toLowerCase()] : value;
  if (typeof is !== 'boolean' || (operator !== 'eq' && operator !== 'ne'))
    throw invalid('It is compared with eq or ne, and true or false.');
  return (operator === 'eq') === is ? sql : `not ${sql}`;
}

const ORDER: { [Name in Operator]?: string } = { eq: '=', ne: '<>', gt: '>', ge: '>=', lt: '<', le: '<=' };

function orderOf(operator: Operator): string {
  const sign = ORDER[operator];
  if (!sign) throw invalid(`A time is not compared with ${operator}.`);
  return sign;
}

function timeOf(value: FilterValue): Date {
  const time = typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value) ? new Date(value) : null;
  if (!time || Number.isNaN(time.getTime())) throw invalid('A time is written as "2026-01-31T12:00:00Z".');
  return time;
}

function texts(sql: string, operator: Operator, text: string): string {
  if (operator === 'ne') return `${sql} is distinct from ${text}`;
  if (operator === 'co') return `position(${text} in ${sql}) > 0`;
  if (operator === 'sw') return `starts_with(${sql}, ${text})`;
  if (operator === 'ew') return `right(${sql}, length(${text})) = ${text}`;
  return `${sql} ${orderOf(operator)} ${text}`;
}

function storable(text: string): string {
  if (isUnstorable(text)) throw invalid('A text has a character that cannot be stored.');
  return text;
}

/** The order of a list, at last by identifier. @throws ScimError `invalidValue` */
export function orderBy(sortBy: string | null, sortOrder: string | null, attributes: Attributes, id: string): string {
  if (sortBy === null) return id;
  const key = attributeKey(sortBy);
  const known = Object.hasOwn(attributes, key) ? attributes[key]! : null;
  if (!known || known.as === 'member')
    throw badRequest('invalidValue', `The service does not sort by '${key.slice(0, 80)}'.`);
  const direction = sortOrder?.toLowerCase() === 'descending' ? 'desc' : 'asc';
  const sql =
    { text: `lower(${known.sql}) collate "C"`, key: `${known.sql} collate "C"` }[known.as as string] ?? known.sql;
  return `${sql} ${direction} nulls last, ${id}`;
}
