/** The media types of a result, in the order of yoga, which takes the last match. */
const TYPES = ['application/graphql-response+json', 'application/json'] as const;

/**
 * The media type of a result, negotiated like yoga: the first in `Accept` that matches one of ours, whatever its
 * weight. `null` if none does: then the answer is a stream, a page, or nothing.
 */
export function answerTypeOf(accept: string | undefined): (typeof TYPES)[number] | null {
  if (!accept || accept === '*/*' || accept === 'application/json') return 'application/json';
  let chosen: (typeof TYPES)[number] | null = null;
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
