import type { FastifyRequest } from 'fastify';

/**
 * The arguments of the root field behind a façade request that its path and query name, unchecked: what is no single
 * text is left out.
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
