/** What a server that answers 401 says of the tokens that it wants (RFC 6750, 3; RFC 9728, 5.1). */
export interface BearerChallenge {
  /** Where its metadata is. */
  resourceMetadata: string | null;
  /** What a token should allow. */
  scope: string | null;
}

/** What is longer is not read. */
const MAX_LENGTH = 4_096;
const BEARER = /(?:^|,)[ \t]*bearer(?:[ \t]+|$)/i;
/**
 * A parameter of a challenge, in quotes or without. A name is looked at from its first letter only: from each of them,
 * a long one would take the square of its length.
 */
const PARAMETER = /(?<![a-z_])([a-z_]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))/gi;

/** The challenge for bearer tokens in a header `WWW-Authenticate`; `null` if it has none. */
export function bearerChallenge(header: string | null): BearerChallenge | null {
  if (header === null || header.length > MAX_LENGTH) return null;
  const begin = BEARER.exec(header);
  if (!begin) return null;
  const values = new Map<string, string>();
  for (const [, name, quoted, plain] of header.slice(begin.index + begin[0].length).matchAll(PARAMETER)) {
    const key = name!.toLowerCase();
    // what comes later may be of another challenge
    if (!values.has(key)) values.set(key, quoted?.replace(/\\(.)/g, '$1') ?? plain!);
  }
  return { resourceMetadata: values.get('resource_metadata') ?? null, scope: values.get('scope') ?? null };
}
