import { type ErrorCode, errorCatalogue } from '../../kernel/errors.ts';

/** The media types of a result, in the order of yoga, which takes the last match. */
const TYPES = ['application/graphql-response+json', 'application/json'] as const;
/** The one whose status says whether there is data. */
export const RESPONSE_TYPE = TYPES[0];
/** Those of results one after another. The first one takes every operation. */
const STREAMS = ['text/event-stream', 'multipart/mixed'] as const;
/** All media types of answers. The first one is that of a client that takes any. */
const ALL = [TYPES[1], TYPES[0], ...STREAMS] as const;

type AnswerType = (typeof TYPES)[number];

const notAcceptable = (message: string) => ({ errors: [{ message, extensions: { code: 'NOT_ACCEPTABLE' } }] });
/** To a request that takes none of our types. Nothing of it ran. */
export const NOT_ACCEPTABLE = notAcceptable(`"Accept" must allow one of ${ALL.join(', ')}, in UTF-8.`);
/** To a subscription, whose client takes no stream. */
export const NO_STREAM = notAcceptable(`For a subscription, "Accept" must allow ${STREAMS[0]}.`);

/** A range of `Accept`. */
interface Range {
  type: string;
  weight: number;
}

const WEIGHT = /^q\s*=\s*(.*)$/;
const CHARSET = /^charset\s*=\s*"?(.*?)"?$/;

/** The ranges of `Accept`, in their order. Those in another charset than UTF-8 are left out. */
function rangesOf(accept: string): Range[] {
  return accept.split(',').flatMap((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const given = (pattern: RegExp) => parameters.flatMap((parameter) => pattern.exec(parameter)?.[1] ?? []).at(0);
    if ((given(CHARSET) ?? 'utf-8') !== 'utf-8') return [];
    const weight = Number(given(WEIGHT) || 1);
    return [{ type, weight: Number.isNaN(weight) ? 1 : weight }];
  });
}

/** RFC 9110: of the ranges that fit a type, the most specific one says its weight. */
function rangeOf(ours: string, ranges: readonly Range[]): Range | undefined {
  const [main] = ours.split('/');
  const fitting = (name: string) => ranges.find(({ type }) => type === name);
  return fitting(ours) ?? fitting(`${main}/*`) ?? fitting('*/*');
}

/**
 * The types of ours that a client takes, the one that it wants most first: yoga knows no weights. One that would
 * rather have a stream than JSON is not offered JSON, which yoga prefers.
 */
export function byWeight(accept: string): string {
  if (!/;\s*q\s*=/i.test(accept)) return accept;
  const ranges = rangesOf(accept);
  const wanted = ALL.flatMap((type) => {
    const range = rangeOf(type, ranges);
    return range && range.weight > 0 ? [{ type, weight: range.weight, at: ranges.indexOf(range) }] : [];
  }).sort((a, b) => b.weight - a.weight || a.at - b.at);
  const best = wanted.filter(({ weight }) => weight === wanted[0]?.weight);
  if (best.some(({ type }) => isJson(type))) return wanted.map(({ type }) => type).join(', ');
  // a query takes the last of several streams
  const isFirst = best[0]?.type === STREAMS[0];
  return isFirst ? STREAMS[0] : wanted.flatMap(({ type }) => (isJson(type) ? [] : [type])).join(', ');
}

const isJson = (type: string): boolean => (TYPES as readonly string[]).includes(type);

/** Whether an answer of some type is wanted. */
export function isAcceptable(accept: string): boolean {
  const ranges = rangesOf(accept);
  return ALL.some((type) => (rangeOf(type, ranges)?.weight ?? 0) > 0);
}

/** Whether a client that names HTML wants it at least as much as JSON. */
export function prefersHtml(accept: string): boolean {
  const ranges = rangesOf(accept);
  const html = ranges.find(({ type }) => type === 'text/html')?.weight ?? 0;
  return html > 0 && TYPES.every((type) => (rangeOf(type, ranges)?.weight ?? 0) <= html);
}

/** The status of an answer: one without data is no success, for who understands the media type that says so. */
export function statusOf(type: string, { data, errors }: { data?: unknown; errors?: readonly unknown[] }): number {
  if (data !== undefined || !type.startsWith(RESPONSE_TYPE)) return 200;
  const { code } = (errors?.[0] as { extensions?: { code?: string } } | undefined)?.extensions ?? {};
  const status = Object.hasOwn(errorCatalogue, code ?? '') ? errorCatalogue[code as ErrorCode].status : 400;
  // an invalid variable is a fault of the request
  return status === errorCatalogue.VALIDATION_ERROR.status ? 400 : status;
}

/**
 * The media type of a result, negotiated like yoga: the first in `Accept` that matches one of ours, once they are
 * {@link byWeight}. `null` if none does: then the answer is a stream, a page, or nothing.
 */
export function answerTypeOf(accept: string | undefined): AnswerType | null {
  if (!accept || accept === '*/*' || accept === 'application/json') return 'application/json';
  let chosen: AnswerType | null = null;
  for (const range of accept.replaceAll(/\s/g, '').toLowerCase().split(',').reverse()) {
    const [type = '', ...parameters] = range.split(';');
    const charset = parameters.find((parameter) => parameter.includes('charset=')) ?? 'charset=utf-8';
    if (charset !== 'charset=utf-8') continue;
    for (const ours of TYPES) if (fits(ours, type)) chosen = ours;
  }
  return chosen;
}

function fits(ours: string, range: string): boolean {
  const [type, subtype] = range.split('/');
  const [own, ownSubtype] = ours.split('/');
  return (type === '*' || type === own) && (subtype === '*' || subtype === ownSubtype);
}
