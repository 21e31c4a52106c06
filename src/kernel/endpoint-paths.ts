/**
 * An element of a token's `endpoint_paths`: a prefix of a canonical REST path that ends at a segment boundary
 * (`/v1/orgs/org_1/secrets`), or a glob in which `*` matches one segment and `**` at the end matches any rest
 * (`/v1/orgs/{any}/secrets/**`, with `*` for `{any}`).
 */
export interface EndpointPattern {
  /** Segments as in canonical paths; `*` for any one. */
  segments: readonly string[];
  /** Whether anything that follows matches too. */
  isOpen: boolean;
}

/**
 * Parses a pattern. `null` if it could never match: no leading slash, empty or dotted segments, `*` within a segment
 * (encoded too: nobody should have to know what it means), `**` not at the end.
 */
export function parseEndpointPattern(text: string): EndpointPattern | null {
  if (!text.startsWith('/')) return null;
  const segments = text.replace(/\/$/, '').split('/').slice(1);
  const isRest = segments.at(-1) === '**';
  if (isRest) segments.pop();
  const canonical = segments.map((segment) => (segment === '*' ? segment : canonicalSegment(segment)));
  if (canonical.includes(null)) return null;
  return { segments: canonical as string[], isOpen: isRest || !segments.includes('*') };
}

/** A literal segment as in canonical paths, in whatever encoding it is given. */
function canonicalSegment(segment: string): string | null {
  try {
    const literal = decodeURIComponent(segment);
    return ['', '.', '..'].includes(literal) || literal.includes('*') ? null : encodeURIComponent(literal);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/** Whether a pattern matches a canonical path. */
export function matchesPath({ segments, isOpen }: EndpointPattern, path: string): boolean {
  const given = path.split('/').slice(1);
  if (isOpen ? given.length < segments.length : given.length !== segments.length) return false;
  return segments.every((segment, index) => segment === '*' || segment === given[index]);
}

/** Whether `outer` matches everything that `inner` matches. */
export function coversPattern(outer: EndpointPattern, inner: EndpointPattern): boolean {
  const [wide, narrow] = [outer.segments, inner.segments];
  if (outer.isOpen ? narrow.length < wide.length : inner.isOpen || narrow.length !== wide.length) return false;
  return wide.every((segment, index) => segment === '*' || segment === narrow[index]);
}

/** Literal text and names of variables in turn, by template: there are as many as there are routes. */
const partsOf = new Map<string, readonly string[]>();

/**
 * The canonical path of a request: the template of its route with the variables filled in, each decoded and encoded
 * again. Never the raw URL: doubled slashes, dots and other spellings cannot make one path look like another.
 */
export function canonicalPath(template: string, params: Readonly<Record<string, string>>): string {
  const parts = partsOf.get(template) ?? template.split(/\{([^}]*)\}/);
  partsOf.set(template, parts);
  let path = parts[0]!;
  for (let at = 1; at < parts.length; at += 2)
    path += encodeURIComponent((params[parts[at]!] ?? '').toWellFormed()) + parts[at + 1]!;
  return path;
}
