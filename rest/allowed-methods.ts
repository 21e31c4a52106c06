import type { FastifyInstance } from 'fastify';

/** Route patterns with their methods, for the `Allow` header. */
type Routes = { matches: (segments: readonly string[]) => boolean; methods: Set<string> }[];

const routesOf = new WeakMap<object, Routes>();

/** Records every route that is registered from now on, in this scope and its child scopes. */
export function rememberRoutes(server: FastifyInstance): void {
  const routes: Routes = [];
  routesOf.set(server, routes);
  server.addHook('onRoute', ({ url, method }) => {
    routes.push({ matches: matcherOf(url), methods: new Set([method].flat()) });
  });
}

/** Ignores a trailing slash. */
const segmentsOf = (path: string): string[] => path.replace(/^\/|\/$/g, '').split('/');

function matcherOf(pattern: string): (segments: readonly string[]) => boolean {
  const wanted = segmentsOf(pattern);
  const isOpen = wanted.at(-1) === '*';
  return (segments) => {
    if (isOpen ? segments.length < wanted.length - 1 : segments.length !== wanted.length) return false;
    return wanted.every((segment, index) => segment === '*' || segment.startsWith(':') || segment === segments[index]);
  };
}

/** The methods of all routes for this URL, sorted; `[]` when the path is unknown. */
export function allowedMethods(server: FastifyInstance, url: string): string[] {
  const [path = ''] = url.split('?', 1);
  const segments = segmentsOf(path);
  // a wildcard for every path (CORS preflight) does not make a path known
  const found = (routesOf.get(server) ?? []).filter((route) => route.matches(segments));
  const methods = new Set(found.flatMap((route) => [...route.methods]));
  const isKnown = [...methods].some((method) => method !== 'OPTIONS');
  return isKnown ? [...methods].sort() : [];
}
