import { isJsonObject } from '../../kernel/json-object.ts';
import type { ActionRequestParts } from '../tool-instances/action-request.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { foreignNames } from '../tools/placeholders.ts';
import { parametersIn } from './action-arguments.ts';
import { valueAt } from './result-path.ts';

/** What chooses a page: values of parameters, or the whole address. */
export interface PageChoice {
  values: Readonly<Record<string, string | number>>;
  /** The address that the page before named. */
  at?: URL;
}

/** A page that was answered. */
export interface AnsweredPage {
  json: unknown;
  headers: Headers;
  /** The address that answered, after redirects: what links are relative to. */
  url: string;
  /** How many items it has. */
  count: number;
  /** What was sent for a parameter; `null` if nothing was. */
  sent: (name: string) => unknown;
}

/**
 * Why there is no next page. `end`: the provider has no more. `repeated`: it would be one that was read already.
 * `elsewhere`: it is on another host.
 */
export type NoPage = 'end' | 'repeated' | 'elsewhere';

/** How the pages of an action follow each other. */
export interface Pagination {
  /** What chooses the first page, where the call itself does not. */
  readonly first: PageChoice;
  /** Most pages that the action allows. */
  readonly maxPages: number;
  /** Where a page has its items. */
  readonly itemsPath: string;
  /** The property that tells items apart. */
  readonly uniqueKey: string;
  /** Begins to read: what is returned finds the page after each. */
  start(): (page: AnsweredPage) => PageChoice | NoPage;
}

type Described = Readonly<Record<string, unknown>>;
type Next = ReturnType<Pagination['start']>;

const MOST_PAGES = 100;
const SIZE = 100;

const textAt = (from: Described, name: string, initial: string): string => {
  const value = from[name];
  return typeof value === 'string' && value !== '' ? value : initial;
};
const numberAt = (from: Described, name: string, initial: number): number => {
  const value = from[name];
  return typeof value === 'number' ? value : initial;
};

/** How the pages of an action follow each other; `null` for an action that has none. */
export function paginationOf(action: ToolAction): Pagination | null {
  const described = isJsonObject(action.pagination) ? action.pagination : {};
  const kind = KINDS.get(textAt(described, 'type', 'none'));
  if (!kind || typeof action.url_template !== 'string') return null;
  const results = textAt(described, 'results_path', '$').trim();
  return {
    ...kind(described),
    maxPages: numberAt(described, 'max_pages', MOST_PAGES),
    // the place of the result, unless the items have one of their own
    itemsPath: results === '$' ? textAt(action, 'response_result_path', '$') : results,
    uniqueKey: textAt(described, 'unique_key', 'id'),
  };
}

const KINDS: ReadonlyMap<string, (described: Described) => Pick<Pagination, 'first' | 'start'>> = new Map([
  ['cursor', byCursor],
  ['offset', byOffset],
  ['page', byNumber],
  ['next_link', byLink],
]);

/** `false` and numbers in texts are understood, too. */
function hasMore(described: Described, json: unknown): boolean | null {
  const path = textAt(described, 'has_more_path', '');
  const found = path === '' ? undefined : valueAt(json, path);
  if (typeof found === 'boolean') return found;
  return found === 'true' ? true : found === 'false' ? false : null;
}

/** The number of all results, if the answer says it. */
function totalOf(described: Described, json: unknown): number | null {
  const path = textAt(described, 'total_count_path', '');
  return path === '' ? null : countIn(valueAt(json, path));
}

/** A whole number that is not negative, also in a text. */
function countIn(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : null;
}

function byCursor(described: Described): Pick<Pagination, 'first' | 'start'> {
  const param = textAt(described, 'cursor_param', 'cursor');
  const path = textAt(described, 'cursor_response_path', '$.next_cursor');
  // not every list by cursor has a size of pages: it is sent where the action names it
  const isSized = described.limit_param !== undefined || described.default_limit !== undefined;
  const size = { [textAt(described, 'limit_param', 'limit')]: numberAt(described, 'default_limit', SIZE) };
  const sized = isSized ? size : {};
  return {
    first: { values: sized },
    start: (): Next => {
      const seen = new Set<unknown>();
      return ({ json, sent }) => {
        if (hasMore(described, json) === false) return 'end';
        const cursor = valueAt(json, path);
        if ((typeof cursor !== 'string' && typeof cursor !== 'number') || cursor === '') return 'end';
        const before = sent(param);
        if (before !== null && before !== undefined) seen.add(String(before as string));
        if (seen.has(String(cursor))) return 'repeated';
        return { values: { ...sizeSent(sized, sent), [param]: cursor } };
      };
    },
  };
}

/** What a page after the first repeats: the size that the first had. */
const sizeSent = (size: PageChoice['values'], sent: AnsweredPage['sent']): PageChoice['values'] =>
  Object.fromEntries(Object.entries(size).map(([name, value]) => [name, countIn(sent(name)) ?? value]));

/** Without a word on it, only an empty page is known to be the end: a short one may be all that the provider gives. */
const isLast = (described: Described, { json, count }: AnsweredPage, read: number): boolean => {
  const more = hasMore(described, json);
  const total = totalOf(described, json);
  return count === 0 || more === false || (more === null && total !== null && read >= total);
};

function byOffset(described: Described): Pick<Pagination, 'first' | 'start'> {
  const param = textAt(described, 'offset_param', 'offset');
  const size = { [textAt(described, 'limit_param', 'limit')]: numberAt(described, 'default_limit', SIZE) };
  return {
    first: { values: { [param]: 0, ...size } },
    start: (): Next => (page) => {
      const next = (countIn(page.sent(param)) ?? 0) + page.count;
      return isLast(described, page, next) ? 'end' : { values: { [param]: next, ...sizeSent(size, page.sent) } };
    },
  };
}

function byNumber(described: Described): Pick<Pagination, 'first' | 'start'> {
  const param = textAt(described, 'page_param', 'page');
  const sizeParam = textAt(described, 'per_page_param', 'per_page');
  const size = { [sizeParam]: numberAt(described, 'default_per_page', SIZE) };
  return {
    first: { values: { [param]: 1, ...size } },
    start: (): Next => {
      let read: number | null = null;
      return (page) => {
        const number = countIn(page.sent(param)) ?? 1;
        // a call may begin in the middle
        read ??= Math.max(0, number - 1) * (countIn(page.sent(sizeParam)) ?? SIZE);
        read += page.count;
        if (isLast(described, page, read)) return 'end';
        return { values: { [param]: number + 1, ...sizeSent(size, page.sent) } };
      };
    },
  };
}

function byLink(described: Described): Pick<Pagination, 'first' | 'start'> {
  const path = textAt(described, 'next_link_path', '');
  return {
    first: { values: {} },
    start: (): Next => {
      const seen = new Set<string>();
      return ({ json, headers, url }) => {
        if (hasMore(described, json) === false) return 'end';
        const link = path === '' ? linkIn(headers.get('link') ?? '') : valueAt(json, path);
        if (typeof link !== 'string' || link === '') return 'end';
        if (!URL.canParse(link, url)) return 'elsewhere';
        const next = new URL(link, url);
        next.hash = '';
        if (seen.has(next.href) || next.href === url) return 'repeated';
        seen.add(next.href);
        return { values: {}, at: next };
      };
    },
  };
}

/** The target of `rel="next"` in a `Link` header (RFC 8288); `null` if it has none. */
function linkIn(header: string): string | null {
  for (const [, target, parameters] of header.matchAll(/<([^<>]*)>([^<>]*)/g))
    if (/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\b)/i.test(parameters!)) return target!;
  return null;
}

/** The parameters of an action that its templates use: their values are placed there. */
const placedNames = (action: ToolAction): Set<string> => {
  const used = foreignNames({ ...action, parameters: [] });
  return new Set(
    parametersIn(action)
      .map(({ name }) => name)
      .filter((name) => used.has(name)),
  );
};

/**
 * The parts of the request of a page. What chooses it goes where the templates of the action name it, or else into the
 * query. What the call itself says of its first page stays.
 */
export function partsOfPage(
  parts: ActionRequestParts,
  { values, at }: PageChoice,
  isFirst: boolean,
): ActionRequestParts {
  const placed = placedNames(parts.action);
  const entries = Object.entries(values);
  const own = Object.fromEntries(entries.filter(([name]) => placed.has(name)));
  const query = Object.fromEntries(entries.filter(([name]) => !placed.has(name)));
  const { parameters } = parts;
  return {
    ...parts,
    parameters: isFirst ? { ...own, ...parameters } : { ...parameters, ...own },
    page: { query, isFirst, ...(at && { at }) },
  };
}

/** What a request has for the parameters that choose its page. */
export function sentIn({ action, parameters }: ActionRequestParts, url: string): AnsweredPage['sent'] {
  const placed = placedNames(action);
  const { searchParams } = new URL(url);
  return (name) => (placed.has(name) ? parameters[name] : searchParams.get(name));
}
