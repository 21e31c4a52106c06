import { isUtf8 } from 'node:buffer';
import { type JsonBounds, overloadOf } from '../../kernel/json-shape.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import { plainLine } from '../connections/token-answer.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { differenceFrom } from './output-check.ts';
import type { Redactor } from './redactor.ts';
import { valueAt } from './result-path.ts';

/** Most bytes of an answer that are shown. */
export const MAX_SHOWN_BYTES = 256 * 1024;
/** Most bytes of an answer that is read at once; a larger one is read in a thread. */
export const USUAL_BYTES = 1024 * 1024;
const MAX_EXCERPT = 1_000;
const MAX_HEADER = 1_000;
/** What of an answer is taken apart: more costs the process too much, and is shown as a text. */
const JSON_BOUNDS: JsonBounds = { maxDepth: 64, maxValues: 60_000 };

/** What an action says of its answers. */
export type PromisedAnswer = Readonly<Record<string, unknown>>;

/** How a result is written. `none`: there is none. */
export type ResultFormat = 'json' | 'text' | 'base64' | 'none';

/** The whole of a result that is cut, without any credential. */
export interface WholeOfCut {
  /** `null` if a credential is in it that cannot be taken out. */
  content: Buffer | null;
  /** `null` if nobody says what it is. */
  contentType: string | null;
  isText: boolean;
  sizeBytes: number;
}

/** What a call gave, without any credential. */
export interface ShownAnswer {
  status: number;
  headers: Record<string, string>;
  format: ResultFormat;
  result: unknown;
  /** Whether the result is only the beginning. */
  truncated: boolean;
  /** The whole of such a result; `null` if it is not cut. */
  whole: WholeOfCut | null;
  sizeBytes: number;
  /** The beginning of the body of a refusal. */
  excerpt: string | null;
  /** What is wrong with an answer that the provider calls a success; `null` if nothing is. */
  fault: string | null;
}

/** Headers that matter to whoever reads an answer; cookies and the like are the provider's and the service's. */
const HEADERS: ReadonlySet<string> = new Set([
  'content-language',
  'content-range',
  'content-type',
  'date',
  'etag',
  'last-modified',
  'link',
  'location',
  'retry-after',
  'x-request-id',
  'x-total-count',
]);
const RATE_LIMIT_HEADER = /^(?:x-)?ratelimit-[a-z-]+$/;

/** The headers of an answer that are shown. */
export const headersOf = (headers: Headers, redactor: Redactor): Record<string, string> =>
  Object.fromEntries(
    [...headers]
      .filter(([name]) => HEADERS.has(name) || RATE_LIMIT_HEADER.test(name))
      .map(([name, value]) => [name, redactor.clean(value).slice(0, MAX_HEADER)]),
  );

type ResultPart = Pick<ShownAnswer, 'format' | 'result' | 'truncated' | 'whole' | 'fault'>;

/**
 * What is shown of an answer. Secrets are removed before anything is cut: half a secret is one, too.
 * @param bounds of the JSON that is taken apart
 */
export function shownAnswer(
  action: PromisedAnswer,
  answer: OutboundResponse,
  redactor: Redactor,
  bounds = JSON_BOUNDS,
): ShownAnswer {
  const common = {
    status: answer.status,
    headers: headersOf(answer.headers, redactor),
    sizeBytes: answer.body.length,
    excerpt: null,
  };
  if (answer.isOk) return { ...common, ...resultOf(action, answer, redactor, bounds) };
  const text = isUtf8(answer.body) ? plainLine(refusalText(answer.text(), redactor, bounds), MAX_EXCERPT) : '';
  return { ...common, ...nothing, excerpt: text === '' ? null : text };
}

/** The text of a refusal. JSON is taken apart first: it has many spellings of one text. */
function refusalText(text: string, redactor: Redactor, bounds: JsonBounds): string {
  const json = parsed(text, bounds);
  const cleaned = redactor.cleanJson(json);
  return cleaned === json ? redactor.clean(text) : JSON.stringify(cleaned);
}

const nothing: ResultPart = { format: 'none', result: null, truncated: false, whole: null, fault: null };

function resultOf(
  action: PromisedAnswer,
  answer: OutboundResponse,
  redactor: Redactor,
  bounds: JsonBounds,
): ResultPart {
  const { body, status } = answer;
  const path = typeof action.response_result_path === 'string' ? action.response_result_path : '';
  const type = (action.output_schema as { type?: unknown } | undefined)?.type;
  const isJsonWanted = type === 'object' || type === 'array' || path !== '';
  if (body.length === 0)
    return { ...nothing, fault: isJsonWanted && action.method !== 'HEAD' && status !== 204 ? NOT_JSON : null };
  const text = isUtf8(body) ? answer.text() : null;
  const json = text === null ? undefined : parsed(text, bounds);
  if (json !== undefined) return jsonResult(action, json, path, redactor);
  return {
    ...(text === null ? bytesResult(answer, redactor) : textResult(text, answer, redactor)),
    fault: isJsonWanted ? NOT_JSON : null,
  };
}

const NOT_JSON = 'it is not the JSON that the action promises';

function parsed(text: string, bounds = JSON_BOUNDS): unknown {
  if (overloadOf(text, bounds)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // no JSON: the text itself is the result
  }
}

function jsonResult(action: PromisedAnswer, json: unknown, path: string, redactor: Redactor): ResultPart {
  const found = valueAt(json, path);
  if (found === undefined) return { ...nothing, fault: `it has nothing at '${path}'` };
  const difference = action.output_schema === undefined ? null : differenceFrom(action.output_schema, found);
  return { ...shownJson(found, redactor), fault: difference === null ? null : redactor.clean(difference) };
}

/** A value as the result of an action. */
export function shownJson(value: unknown, redactor: Redactor): Omit<ResultPart, 'fault'> {
  const result = redactor.cleanJson(value);
  const written = JSON.stringify(result);
  if (Buffer.byteLength(written) <= MAX_SHOWN_BYTES) return { format: 'json', result, truncated: false, whole: null };
  return cutText(written, 'application/json');
}

/** A page of a list. */
export interface PageResult {
  json: unknown;
  items: readonly unknown[];
  /** What is wrong with it; `null` if nothing is. */
  fault: string | null;
}

/** The items of a page that the provider calls a success. */
export function pageResult(action: ToolAction, answer: OutboundResponse, itemsPath: string): PageResult {
  const json = isUtf8(answer.body) ? parsed(answer.text()) : undefined;
  if (json === undefined) return { json, items: [], fault: NOT_JSON };
  const path = typeof action.response_result_path === 'string' ? action.response_result_path : '';
  const result = valueAt(json, path);
  if (result === undefined) return { json, items: [], fault: `it has nothing at '${path}'` };
  const difference = action.output_schema === undefined ? null : differenceFrom(action.output_schema, result);
  if (difference !== null) return { json, items: [], fault: difference };
  const items = valueAt(json, itemsPath);
  return Array.isArray(items)
    ? { json, items, fault: null }
    : { json, items: [], fault: `it has no list at '${itemsPath}'` };
}

const textResult = (text: string, { headers }: OutboundResponse, redactor: Redactor): Omit<ResultPart, 'fault'> =>
  cutText(redactor.clean(text), headers.get('content-type'));

function cutText(text: string, contentType: string | null): Omit<ResultPart, 'fault'> {
  const content = Buffer.from(text);
  const result = cut(content);
  const sizeBytes = content.length;
  return result === null
    ? { format: 'text', result: text, truncated: false, whole: null }
    : { format: 'text', result, truncated: true, whole: { content, contentType, isText: true, sizeBytes } };
}

/** Bytes cannot be cleaned: those that have a secret are not shown. */
function bytesResult({ body, headers }: OutboundResponse, redactor: Redactor): Omit<ResultPart, 'fault'> {
  const whole = { content: body, contentType: headers.get('content-type'), isText: false, sizeBytes: body.length };
  if (redactor.isIn(body)) return { format: 'none', result: null, truncated: true, whole: { ...whole, content: null } };
  const shown = body.subarray(0, (MAX_SHOWN_BYTES / 4) * 3);
  const truncated = shown.length < body.length;
  return { format: 'base64', result: shown.toString('base64'), truncated, whole: truncated ? whole : null };
}

/** The beginning of a text, at most so many bytes, and whole characters; `null` if that is all of it. */
const cut = (bytes: Buffer): string | null => {
  if (bytes.length <= MAX_SHOWN_BYTES) return null;
  let end = MAX_SHOWN_BYTES;
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end).toString();
};
