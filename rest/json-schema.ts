import type { GraphQLInputObjectType, GraphQLInputType, GraphQLOutputType, GraphQLScalarType } from 'graphql';
import { getNullableType, isEnumType, isInputObjectType, isListType, isNonNullType, isScalarType } from 'graphql';
import { type Constraints, constraintsOf, MAX_KEY_LENGTH } from '../src/kernel/constraints.ts';
import { type JsonType, jsonTypeOf } from '../src/kernel/json-type.ts';
import { withinType } from './coerce.ts';
import { fieldOfUnknownKeys, restFields, restValues } from './names.ts';
import { type JsonSchema, KEY, nullable, reference, TEXT } from './schema-parts.ts';
import type { FieldShape, ObjectShape } from './selection.ts';
import { addShape } from './shapes.ts';
import { externalDefault } from './targets.ts';

const byJsonType: Record<JsonType, JsonSchema> = {
  string: { type: 'string' },
  'date-time': { type: 'string', format: 'date-time' },
  integer: { type: 'integer', format: 'int32' },
  int53: { type: 'integer', format: 'int64' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  object: { type: 'object', additionalProperties: true },
  any: {},
};

/** The schema of a scalar on the wire. A map declares the schema of its values in `extensions.jsonValues`. */
function scalarSchema(scalar: GraphQLScalarType): JsonSchema {
  const values = scalar.extensions.jsonValues;
  const schema = byJsonType[jsonTypeOf(scalar)];
  return values ? { ...schema, additionalProperties: { type: values } } : { ...schema };
}

/** The same for requests: tools that generate requests ignore the format of a text that may also be null. */
const orNull = (schema: JsonSchema): JsonSchema =>
  schema.type === 'string' && schema.format !== undefined ? { anyOf: [schema, { type: 'null' }] } : nullable(schema);

const described = (schema: JsonSchema, description: string | null | undefined): JsonSchema =>
  description ? { ...schema, description } : schema;

/** Builds schemas, and collects the named ones that they refer to. */
export class JsonSchemas {
  readonly components: Record<string, JsonSchema> = {};

  /** Schema of an input as a client sends it. `isText`: it is sent in the URL or a header, which have no null. */
  input(type: GraphQLInputType, constraints: Constraints, isText = false): JsonSchema {
    const schema = this.#nonNullInput(getNullableType(type), constraints, isText);
    return isNonNullType(type) || isText || constraints.notNull ? schema : orNull(schema);
  }

  #nonNullInput(type: GraphQLInputType, constraints: Constraints, isText: boolean): JsonSchema {
    if (isListType(type)) {
      const items = this.input(type.ofType as GraphQLInputType, constraints.item ?? {}, isText);
      return { type: 'array', items, ...bounds({ minItems: constraints.minItems, maxItems: constraints.maxItems }) };
    }
    if (isInputObjectType(type)) return this.inputObject(type);
    if (isEnumType(type)) return { type: 'string', enum: constraints.oneOf ?? [...restValues(type).keys()] };
    const schema: JsonSchema = {
      ...scalarSchema(type),
      ...(type.specifiedByURL ? { externalDocs: { url: type.specifiedByURL } } : {}),
    };
    if (constraints.shape) return { ...addShape(this.components, constraints.shape), ...freeKeywords(constraints) };
    return { ...schema, ...keywords(schema, withinType(type, constraints)) };
  }

  /** @param fileField the field that is a file, if the object is a form */
  inputObject(type: GraphQLInputObjectType, fileField: string | null = null): JsonSchema {
    // the same input may be a form in one route and JSON in another
    const name = fileField === null ? type.name : `${type.name}Form`;
    if (!(name in this.components)) {
      const schema: JsonSchema = described({ type: 'object' }, type.description);
      this.components[name] = schema;
      const properties: Record<string, JsonSchema> = {};
      const required: string[] = [];
      for (const [key, field] of restFields(type)) {
        const fallback = externalDefault(field);
        const property: JsonSchema =
          key === fileField ? { type: 'string', format: 'binary' } : this.input(field.type, constraintsOf(field));
        properties[key] = described(
          fallback === undefined ? property : { ...property, default: fallback },
          field.description,
        );
        if (isNonNullType(field.type) && fallback === undefined) required.push(key);
      }
      Object.assign(schema, { properties }, required.length > 0 ? { required } : {}, this.#unknownKeys(type));
    }
    return reference(name);
  }

  /** What is said of the keys that are no fields: of kept ones, what the field that receives them says of its keys. */
  #unknownKeys(type: GraphQLInputObjectType): JsonSchema {
    if (type.extensions.isClosed) return { additionalProperties: false };
    const receiver = fieldOfUnknownKeys(type);
    if (!receiver) return { propertyNames: { not: { const: '__proto__' } } };
    const { propertyNames, additionalProperties } = this.#nonNullInput(
      getNullableType(receiver.type),
      constraintsOf(receiver),
      false,
    );
    return { propertyNames, additionalProperties };
  }

  /** Schema of a response field, from its type and, for objects, the selected fields. */
  output(type: GraphQLOutputType, shape: ObjectShape | null): JsonSchema {
    const schema = this.#nonNullOutput(getNullableType(type) as GraphQLOutputType, shape);
    return isNonNullType(type) ? schema : nullable(schema);
  }

  #nonNullOutput(type: GraphQLOutputType, shape: ObjectShape | null): JsonSchema {
    if (isListType(type)) return { type: 'array', items: this.output(type.ofType as GraphQLOutputType, shape) };
    if (isEnumType(type)) return { type: 'string', enum: [...restValues(type).keys()] };
    if (isScalarType(type)) return scalarSchema(type);
    if (!shape) return { type: 'object' };
    return shape.fragment === null ? this.#object(shape) : this.#fragment(shape.fragment, shape);
  }

  /** A fragment that is the whole selection becomes a component with its name. */
  #fragment(fragment: string, shape: ObjectShape): JsonSchema {
    // an input type may already have the name
    const name = fragment in this.components && !this.#fragments.has(fragment) ? `${fragment}Output` : fragment;
    if (!this.#fragments.has(fragment)) {
      this.#fragments.set(fragment, name);
      this.components[name] = described(this.#object(shape), shape.type.description);
    }
    return reference(this.#fragments.get(fragment) ?? name);
  }
  readonly #fragments = new Map<string, string>();

  #object({ fields }: ObjectShape): JsonSchema {
    const properties: Record<string, JsonSchema> = {};
    const required: string[] = [];
    this.#addProperties(fields, false, false, properties, required);
    return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) };
  }

  #addProperties(
    fields: readonly FieldShape[],
    inNullable: boolean,
    inOptional: boolean,
    properties: Record<string, JsonSchema>,
    required: string[],
  ): void {
    for (const { key, field, type, object, isFlattened, isOptional } of fields) {
      const optional = inOptional || isOptional;
      if (isFlattened && object && type) {
        this.#addProperties(object.fields, inNullable || !isNonNullType(type), optional, properties, required);
        continue;
      }
      const schema = type ? this.output(type, object) : { type: 'string' };
      const isNonNull = !type || isNonNullType(type);
      properties[key] = described(inNullable && isNonNull ? nullable(schema) : schema, field?.description);
      if (!optional) required.push(key);
    }
  }
}

/**
 * JSON Schema keywords for the constraints of a scalar. A free value has none: generators of clients cannot read a
 * schema that contains itself, and left out the operations that had one.
 */
function keywords(schema: JsonSchema, c: Constraints): JsonSchema {
  if (schema.type === undefined) return freeKeywords(c);
  if (schema.type === 'object') return { ...mapKeywords(schema, c), ...freeKeywords(c) };
  if (schema.type === 'integer' || schema.type === 'number') return bounds({ minimum: c.min, maximum: c.max });
  if (schema.type !== 'string' || schema.format === 'date-time') return {};
  return bounds({
    minLength: c.minLength,
    maxLength: c.maxLength,
    'x-max-bytes': c.maxBytes,
    pattern: patternOf(c),
    enum: c.oneOf,
    format: c.format ?? (c.sensitive ? 'password' : undefined),
  });
}

function patternOf({ pattern, oneOf, format }: Constraints): string | undefined {
  if (pattern !== undefined) return `^(?:${pattern})$`;
  return oneOf || format ? undefined : TEXT;
}

/** Bounds the keys of a map with values of one type. Keys of a free object are not bounded. */
function mapKeywords({ additionalProperties: values }: JsonSchema, c: Constraints): JsonSchema {
  const isFree = values === true;
  const item = { ...(values as JsonSchema), ...(isFree ? {} : keywords(values as JsonSchema, c.item ?? {})) };
  return bounds({
    propertyNames: { ...(isFree ? {} : { minLength: 1, maxLength: MAX_KEY_LENGTH }), pattern: KEY },
    additionalProperties: isFree ? true : item,
    maxProperties: c.maxItems,
  });
}

/** JSON Schema has no keyword that bounds bytes. */
const freeKeywords = ({ maxBytes }: Constraints): JsonSchema => bounds({ 'x-max-bytes': maxBytes });

const bounds = (all: JsonSchema): JsonSchema =>
  Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
