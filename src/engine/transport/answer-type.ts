import { type ErrorCode, errorCatalogue } from '../../kernel/errors.ts';

/** The media types of a result, in the order of yoga, which takes the last match. */
const TYPES = ['application/graphql-response+json', 'application/json'] as const;
/** The one whose status says whether there is data. */
export const RESPONSE_TYPE = TYPES[0];

type AnswerType = (typeof TYPES)[number];

/**
 * The ranges of `Accept` by their weight, without weights and without what is not wanted: yoga takes the first that it
 * knows, whatever its weight.
 */
export function byWeight(accept: string): string {
  if (!/;\s*q\s*=/i.test(accept)) return accept;
  const ranges = accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const weights = parameters.filter((parameter) => /^q\s*=/i.test(parameter));
    const weight = weights[0] === undefined ? 1 : Number(weights[0].slice(weights[0].indexOf('=') + 1));
    const others = parameters.filter((parameter) => !weights.includes(parameter));
    return { type: type.toLowerCase(), others, weight: Number.isNaN(weight) ? 1 : weight };
  });
  const unwanted = new Set(ranges.filter(({ weight }) => weight <= 0).map(({ type }) => type));
  // a range of several types stands for those of ours that are wanted
  const wanted = (type: string) =>
    type.includes('*') && unwanted.size > 0 ? TYPES.filter((ours) => fits(ours, type) && !unwanted.has(ours)) : [type];
  return ranges
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .flatMap(({ type, others }) => wanted(type).map((one) => [one, ...others].join(';')))
    .join(', ');
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
