import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getIntrospectionQuery,
  getNamedType,
  isObjectType,
  Kind,
  parse,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
} from 'graphql';

/** A client may request a little more than the standard introspection: tools have their own introspection queries. */
const ALLOWANCE = 1.25;
/** Quotes, colon and comma around a key; the least that a value takes. */
const KEY_BYTES = 4;
const VALUE_BYTES = 4;

const wholes = new WeakMap<GraphQLSchema, number>();

/** The maximum size of an answer about the schema: that of the largest standard introspection, plus an allowance. */
export function wholeSchemaBytes(schema: GraphQLSchema): number {
  const known = wholes.get(schema);
  if (known !== undefined) return known;
  const query = getIntrospectionQuery({
    descriptions: true,
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    schemaDescription: true,
    inputValueDeprecation: true,
    oneOf: true,
  });
  const document = parse(query, { noLocation: true });
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const node of document.definitions)
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
  const [operation] = document.definitions;
  const size = new IntrospectionSize(schema, fragments, {}, Number.POSITIVE_INFINITY);
  let bytes = 0;
  if (operation?.kind === Kind.OPERATION_DEFINITION)
    for (const node of operation.selectionSet.selections) if (node.kind === Kind.FIELD) bytes += size.bytesOf(node);
  const whole = Math.ceil(bytes * ALLOWANCE);
  wholes.set(schema, whole);
  return whole;
}

/**
 * Measures the answer of an introspection by walking over the schema without building the answer, and stops at the
 * limit. Nested lists of types grow too fast for a fixed factor.
 */
export class IntrospectionSize {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #variables: Record<string, unknown>;
  readonly #max: number;
  #bytes = 0;

  constructor(
    schema: GraphQLSchema,
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    variables: Record<string, unknown>,
    max: number = wholeSchemaBytes(schema),
  ) {
    this.#schema = schema;
    this.#fragments = fragments;
    this.#variables = variables;
    this.#max = max;
  }

  /** Bytes that a field `__schema` or `__type` adds to the answer. */
  bytesOf(node: FieldNode): number {
    const before = this.#bytes;
    const meta = node.name.value === '__schema' ? SchemaMetaFieldDef : TypeMetaFieldDef;
    const type = getNamedType(meta.type) as GraphQLObjectType;
    this.#value(type, node, this.#root(node));
    return this.#bytes - before;
  }

  #root(node: FieldNode): unknown {
    if (node.name.value === '__schema') return this.#schema;
    const value = node.arguments?.[0]?.value;
    const name =
      value?.kind === Kind.VARIABLE ? this.#variables[value.name.value] : value && 'value' in value && value.value;
    return typeof name === 'string' ? this.#schema.getType(name) : undefined;
  }

  #value(type: unknown, node: FieldNode, value: unknown): void {
    this.#bytes += (node.alias ?? node.name).value.length + KEY_BYTES;
    if (Array.isArray(value)) for (const item of value) this.#item(type, node, item);
    else this.#item(type, node, value);
  }

  #item(type: unknown, node: FieldNode, value: unknown): void {
    this.#bytes += typeof value === 'string' ? value.length : VALUE_BYTES;
    if (value && node.selectionSet && isObjectType(type)) this.#selection(type, node.selectionSet, value);
  }

  #selection(type: GraphQLObjectType, { selections }: SelectionSetNode, source: unknown): void {
    for (const node of selections) {
      if (this.#bytes > this.#max) return;
      if (node.kind === Kind.FIELD) this.#field(type, node, source);
      else {
        const inner = node.kind === Kind.INLINE_FRAGMENT ? node : this.#fragments.get(node.name.value);
        if (inner) this.#selection(type, inner.selectionSet, source);
      }
    }
  }

  #field(type: GraphQLObjectType, node: FieldNode, source: unknown): void {
    const field = type.getFields()[node.name.value];
    const info = { schema: this.#schema } as GraphQLResolveInfo; // the only property that introspection reads
    if (field?.resolve)
      this.#value(getNamedType(field.type), node, field.resolve(source, { includeDeprecated: true }, undefined, info));
    else this.#value(type, node, type.name); // `__typename`
  }
}
