import type { GraphQLEnumType } from 'graphql';
import { snakeCase } from '../src/kernel/snake-case.ts';

/** A type with fields. */
interface TypeWithFields<Field> {
  name: string;
  extensions?: Readonly<Record<string, unknown>>;
  getFields(): Record<string, Field>;
}

/**
 * The field that receives the unknown keys of an input type, as declared in `extensions.unknownKeys`. Without it they
 * are ignored.
 */
export function fieldOfUnknownKeys<Field>(owner: TypeWithFields<Field>): Field | null {
  const name = owner.extensions?.unknownKeys;
  return typeof name === 'string' ? (owner.getFields()[name] ?? null) : null;
}

/**
 * REST name -> field, in declaration order, without the field for unknown keys. Throws when two fields have the same
 * REST name.
 */
export function restFields<Field extends { name: string }>(owner: TypeWithFields<Field>): Map<string, Field> {
  const byRestName = new Map<string, Field>();
  const others = fieldOfUnknownKeys(owner);
  for (const field of Object.values(owner.getFields())) {
    if (field === others) continue;
    const key = snakeCase(field.name);
    const other = byRestName.get(key);
    if (other) throw new Error(`fields '${other.name}' and '${field.name}' of ${owner.name} are both '${key}' in REST`);
    byRestName.set(key, field);
  }
  return byRestName;
}

/** Whether an enum is a set of words, which are texts in REST: `extensions.isWords`. */
export const isWords = ({ extensions }: GraphQLEnumType): boolean => extensions.isWords === true;

/**
 * REST name -> value of an enum: `RATE_LIMITED` is `rate_limited`, and words stay as they are. Throws when two values
 * have the same REST name.
 */
export function restValues(type: GraphQLEnumType): Map<string, string> {
  const nameOf = isWords(type) ? (name: string) => name : snakeCase;
  const byRestName = new Map(type.getValues().map(({ name }) => [nameOf(name), name]));
  if (byRestName.size < type.getValues().length) throw new Error(`two values of ${type.name} are the same in REST`);
  return byRestName;
}
