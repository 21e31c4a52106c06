import { badRequest } from './scim-error.ts';
import { attributeKey } from './scim-filter.ts';

/** What the query of a request asks for. */
export interface ScimQuery {
  filter: string | null;
  sortBy: string | null;
  sortOrder: string | null;
  /** From 1 on. */
  startIndex: number;
  count: number | null;
  attributes: readonly string[] | null;
  excluded: readonly string[];
}

const MAX_NAMES = 50;
const MAX_TEXT = 4_000;

/** @throws ScimError `invalidValue` */
export function readQuery(query: Readonly<Record<string, unknown>>): ScimQuery {
  const text = (name: string): string | null => {
    const value = query[name];
    if (value === undefined || value === '') return null;
    if (typeof value !== 'string' || value.length > MAX_TEXT)
      throw badRequest('invalidValue', `'${name}' is given once, and is short.`);
    return value;
  };
  const number = (name: string): number | null => {
    const value = text(name);
    if (value !== null && !/^-?\d{1,9}$/.test(value)) throw badRequest('invalidValue', `'${name}' is a whole number.`);
    return value === null ? null : Number(value);
  };
  const names = (name: string): string[] => {
    const found = (text(name) ?? '').split(',', MAX_NAMES + 1).map((part) => attributeKey(part.trim()));
    if (found.length > MAX_NAMES) throw badRequest('invalidValue', `'${name}' has at most ${MAX_NAMES} names.`);
    return found.filter((part) => part !== '');
  };
  const attributes = names('attributes');
  const count = number('count');
  return {
    filter: text('filter'),
    sortBy: text('sortBy'),
    sortOrder: text('sortOrder'),
    startIndex: Math.max(1, number('startIndex') ?? 1),
    count: count === null ? null : Math.max(0, count),
    attributes: attributes.length > 0 ? attributes : null,
    excluded: names('excludedAttributes'),
  };
}

/** Whether an attribute is in the answer. @param isUsual whether it is there when nobody asks for it */
export function isAsked({ attributes, excluded }: ScimQuery, name: string, isUsual = true): boolean {
  if (attributes === null) return isUsual && !excluded.includes(name);
  return attributes.some((asked) => asked === name || asked.startsWith(`${name}.`));
}

const ALWAYS = new Set(['schemas', 'id']);

/** The attributes of a resource that a request asks for. */
export function projected(resource: Readonly<Record<string, unknown>>, query: ScimQuery): Record<string, unknown> {
  const { attributes, excluded } = query;
  if (attributes === null && excluded.length === 0) return { ...resource };
  const entries = Object.entries(resource).flatMap(([name, value]): [string, unknown][] => {
    const key = name.toLowerCase();
    if (ALWAYS.has(key)) return [[name, value]];
    if (!isAsked(query, key)) return [];
    if (attributes?.includes(key)) return [[name, value]];
    return [[name, parts(value, (part) => isPartAsked(query, key, part.toLowerCase()))]];
  });
  return Object.fromEntries(entries);
}

const isPartAsked = ({ attributes, excluded }: ScimQuery, key: string, part: string): boolean =>
  attributes === null ? !excluded.includes(`${key}.${part}`) : attributes.includes(`${key}.${part}`);

function parts(value: unknown, isKept: (name: string) => boolean): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => parts(item, isKept));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => isKept(name)));
}
