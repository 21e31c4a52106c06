import type { GraphQLEnumType } from 'graphql';

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

/** What names and fields of a type are read from. */
interface Owner<Field> {
  name: string;
  extensions?: Readonly<Record<string, unknown>>;
  getFields(): Record<string, Field>;
}

/** The field that takes the keys which an input type does not know, where it says so in `extensions.unknownKeys`; else they are ignored. */
export function fieldOfUnknownKeys<Field>(owner: Owner<Field>): Field | null {
  const name = owner.extensions?.unknownKeys;
  return typeof name === 'string' ? (owner.getFields()[name] ?? null) : null;
}

/** REST name -> field, in declaration order, without the field of unknown keys. Throws when two fields would share one REST name. */
export function restFields<Field extends { name: string }>(owner: Owner<Field>): Map<string, Field> {
  const byRestName = new Map<string, Field>();
  const others = fieldOfUnknownKeys(owner);
  for (const field of Object.values(owner.getFields())) {
    if (field === others) continue;
    const key = restName(field.name);
    const other = byRestName.get(key);
    if (other) throw new Error(`fields '${other.name}' and '${field.name}' of ${owner.name} are both '${key}' in REST`);
    byRestName.set(key, field);
  }
  return byRestName;
}

/** REST name -> value of an enum: `RATE_LIMITED` is `rate_limited`. Throws when two values would share one REST name. */
export function restValues(type: GraphQLEnumType): Map<string, string> {
  const byRestName = new Map(type.getValues().map(({ name }) => [restName(name), name]));
  if (byRestName.size < type.getValues().length) throw new Error(`two values of ${type.name} are the same in REST`);
  return byRestName;
}
