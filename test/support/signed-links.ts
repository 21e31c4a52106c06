/** A text with its signed links as of any moment: two made a second apart end and are signed differently. */
export const ofAnyMoment = (text: string): string => text.replaceAll(/([?&](?:expires|signature)=)[^&"\\\s]*/g, '$1…');

/** The same for each text of a body. What is no JSON, such as a matcher, stays as it is. */
export function bodyOfAnyMoment(body: unknown): unknown {
  if (typeof body === 'string') return ofAnyMoment(body);
  if (Array.isArray(body)) return body.map(bodyOfAnyMoment);
  const isPlain =
    body !== null && typeof body === 'object' && [Object.prototype, null].includes(Object.getPrototypeOf(body));
  if (!isPlain) return body;
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, bodyOfAnyMoment(value)]));
}
