/** Asked for by their nature, and often not among what providers say that they granted. */
const UNSAID = new Set(['openid', 'offline_access', 'offline']);
/** Google's own names of the scopes of OpenID Connect. */
const GOOGLE = 'https://www.googleapis.com/auth/userinfo.';
const GRAPH = 'https://graph.microsoft.com/';

/** A scope as all who write it differently mean it. */
function plainScope(scope: string): string {
  const plain = scope.toLowerCase();
  for (const prefix of [GOOGLE, GRAPH]) if (plain.startsWith(prefix)) return plain.slice(prefix.length);
  return plain;
}

/** Scopes that include one, as GitHub and others write them: `user` has `user:email`, `write:org` has `read:org`. */
function including(scope: string): string[] {
  const [verb, ...rest] = scope.split(':');
  const noun = rest.join(':');
  if (noun === '') return [];
  const above = { read: ['write', 'admin'], write: ['admin'] }[verb!] ?? [];
  return [verb!, noun, ...above.map((word) => `${word}:${noun}`)];
}

/**
 * The scopes that were asked for and not granted. A name that a provider writes differently, or that is part of a wider
 * one, is not missing: a hint that is wrong is worse than none.
 */
export function missingScopes(asked: readonly string[], granted: readonly string[]): string[] {
  const has = new Set(granted.map(plainScope));
  return asked.filter((scope) => {
    const plain = plainScope(scope);
    return !UNSAID.has(plain) && !has.has(plain) && !including(plain).some((wider) => has.has(wider));
  });
}
