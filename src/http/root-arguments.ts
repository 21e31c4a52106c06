import type { FastifyRequest } from 'fastify';

/**
 * The arguments of the root field behind a façade request, as named in its path and query, not validated. Values that
 * are not a single string are left out.
 */
export function rootArgumentsOf({ params, query, routeOptions }: FastifyRequest): Record<string, string | undefined> {
  const parts = { params, query } as Record<'params' | 'query', Record<string, unknown>>;
  const sources = Object.entries(routeOptions.config.rootArguments ?? {});
  return Object.fromEntries(
    sources.map(([argument, { in: part, name }]) => {
      const value = parts[part][name];
      return [argument, typeof value === 'string' ? value : undefined];
    }),
  );
}
