import { isUnstorable } from '../../kernel/constraints.ts';

const MAX_TEXT = 1_024;
const MAX_ITEMS = 200;
const MAX_GROUPS = 1_000;
const MAX_GROUP_LENGTH = 255;
const MAX_DEPTH = 4;

/** What a provider said, small enough to store and to show: long texts and lists are cut, deep objects left out. */
export function boundedClaims(claims: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return bounded(claims, MAX_DEPTH) as Record<string, unknown>;
}

function bounded(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.toWellFormed().replaceAll('\0', '').slice(0, MAX_TEXT).toWellFormed();
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  if (typeof value !== 'object' || depth === 0) return null;
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => bounded(item, depth - 1));
  const entries = Object.entries(value).slice(0, MAX_ITEMS);
  return Object.fromEntries(
    entries.map(([key, item]) => [String(bounded(key, 1)).slice(0, 255), bounded(item, depth - 1)]),
  );
}

/** A text claim as one line; `undefined` for anything else, and for an empty or overlong one. */
export function textClaim(value: unknown, maxLength = 255): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value
    .toWellFormed()
    .replaceAll(/[\s\p{C}]+/gu, ' ')
    .trim();
  return text === '' || text.length > maxLength ? undefined : text;
}

/**
 * The groups of a claim: a list of texts, or one text. Each once; at most 1,000 of at most 255 characters. One with
 * characters that cannot be stored is none: no mapping can name it.
 */
export function groupsOf(value: unknown): string[] {
  const items = Array.isArray(value) ? value : [value];
  const groups = items.filter(
    (item): item is string =>
      typeof item === 'string' && item !== '' && item.length <= MAX_GROUP_LENGTH && !isUnstorable(item),
  );
  return [...new Set(groups)].slice(0, MAX_GROUPS);
}

const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u;

/** An address as a provider names it; `null` if it is none. */
export function emailClaim(value: unknown): string | null {
  const text = textClaim(value, 320);
  return text !== undefined && EMAIL.test(text) ? text : null;
}
