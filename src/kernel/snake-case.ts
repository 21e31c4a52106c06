/**
 * The name of a property or GraphQL field as a column and in REST: `maxCostPer1kTokens` -> `max_cost_per_1k_tokens`.
 * Only this direction exists: the way back is a table of the known names, because the case of an acronym cannot be
 * guessed.
 */
export const snakeCase = (name: string): string =>
  name
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([a-z])(\d+[a-z])/g, '$1_$2')
    .toLowerCase();
