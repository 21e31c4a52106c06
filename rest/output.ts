import type { GraphQLNamedType, GraphQLOutputType } from 'graphql';
import { getNamedType, isEnumType } from 'graphql';
import { restValues } from './names.ts';
import type { FieldShape, ObjectShape } from './selection.ts';
import { lift } from './selection.ts';

type JsonObject = Record<string, unknown>;
type Reshape = (value: unknown) => unknown;

/**
 * Compiles the changes that a result needs after execution: lifting the fields of `@flatten`, and renaming enum values.
 * `null` when none is needed, the usual case: field names are already right, because the executed document has aliases.
 */
export function reshapeOf(type: GraphQLOutputType | null, shape: ObjectShape | null): Reshape | null {
  if (!shape) return renameOf(getNamedType(type ?? undefined));
  const object = shape.fields.some((field) => field.isFlattened) ? rebuild(shape.fields) : touch(shape.fields);
  return object && ((value) => each(value, object));
}

/** Gives enum values their REST names; `null` when they already have them. */
function renameOf(type: GraphQLNamedType | undefined): Reshape | null {
  if (!isEnumType(type)) return null;
  const names = new Map([...restValues(type)].map(([rest, name]) => [name, rest]));
  if ([...names].every(([name, rest]) => name === rest)) return null;
  const rename: Reshape = (value) => (Array.isArray(value) ? value.map(rename) : (names.get(String(value)) ?? null));
  return rename;
}

function each(value: unknown, reshape: (object: JsonObject) => JsonObject): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => each(item, reshape));
  return value === null || value === undefined ? value : reshape(value as JsonObject);
}

/** For an object without flattened fields: replaces, in place, only the fields that contain flattened ones. */
function touch(fields: readonly FieldShape[]): ((object: JsonObject) => JsonObject) | null {
  const steps = fields.flatMap(({ key, type, object }) => {
    const reshape = reshapeOf(type, object);
    return reshape ? [{ key, reshape }] : [];
  });
  if (steps.length === 0) return null;
  return (object) => {
    for (const { key, reshape } of steps) if (key in object) object[key] = reshape(object[key]);
    return object;
  };
}

type CopyField = (from: JsonObject, to: JsonObject) => void;

/** Builds a new object, with the lifted fields in place of the flattened object. */
function rebuild(fields: readonly FieldShape[]): (object: JsonObject) => JsonObject {
  const steps = fields.map(stepOf);
  return (from) => {
    const to: JsonObject = {};
    for (const step of steps) step(from, to);
    return to;
  };
}

function stepOf({ key, type, object, isFlattened, isOptional }: FieldShape): CopyField {
  if (isFlattened && object) {
    const steps = object.fields.map(stepOf);
    const keys = lift(object.fields).map((field) => field.key);
    return (from, to) => {
      const nested = from[key] as JsonObject | null | undefined;
      if (nested) for (const step of steps) step(nested, to);
      else if (nested === null || !isOptional) for (const name of keys) to[name] = null;
    };
  }
  const reshape = reshapeOf(type, object);
  return (from, to) => {
    const value = from[key];
    if (value !== undefined) to[key] = reshape ? reshape(value) : value;
  };
}
