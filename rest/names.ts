/**
 * The REST name of a GraphQL name: camelCase becomes snake_case (`maxCostPer1kTokens` -> `max_cost_per_1k_tokens`).
 * Only this direction exists: the way back is a table made from the schema's own names (see {@link restFields}), because
 * the case of an acronym cannot be guessed.
 */
export function restName(name: string): string {
  if (name.startsWith('__')) return name;
  return name
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([a-z])(\d+[a-z])/g, '$1_$2')
    .toLowerCase();
}

/** REST name -> field, in declaration order. Throws when two fields would share one REST name. */
export function restFields<Field extends { name: string }>(owner: {
  name: string;
  getFields(): Record<string, Field>;
}): Map<string, Field> {
  const byRestName = new Map<string, Field>();
  for (const field of Object.values(owner.getFields())) {
    const key = restName(field.name);
    const other = byRestName.get(key);
    if (other) throw new Error(`fields '${other.name}' and '${field.name}' of ${owner.name} are both '${key}' in REST`);
    byRestName.set(key, field);
  }
  return byRestName;
}
