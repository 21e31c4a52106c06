import {
  type DefinitionNode,
  type DocumentNode,
  type ExecutionArgs,
  type GraphQLNamedType,
  GraphQLScalarType,
  GraphQLSchema,
  Kind,
  type NamedTypeNode,
  OperationTypeNode,
} from 'graphql';
import type { Values } from './types.ts';

/** Takes any value as it is. */
const COERCED = new GraphQLScalarType({ name: 'Coerced' });
/** How documents of ours name it. The grammar knows no such name. */
const NAME = ' coerced';
const TYPE: NamedTypeNode = { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: NAME } };

class SchemaWithCoerced extends GraphQLSchema {
  override getType(name: string): GraphQLNamedType | undefined {
    return name === NAME ? COERCED : super.getType(name);
  }
}

/**
 * The arguments of graphql-js for mutations and subscriptions whose variables are coerced already. `execute` and
 * `createSourceEventStream` coerce what they are given, so here they get the document with variables of a type that
 * takes any value. Not for queries: `__type` would find that type.
 */
export class CoercedArgs {
  readonly #given: GraphQLSchema;
  #schema: GraphQLSchema | undefined;
  readonly #documents = new WeakMap<DocumentNode, DocumentNode>();

  constructor(schema: GraphQLSchema) {
    this.#given = schema;
  }

  of(document: DocumentNode, operationName: string | null | undefined, variableValues: Values): ExecutionArgs {
    const known = this.#documents.get(document);
    const ours = known ?? { ...document, definitions: document.definitions.map(withCoercedVariables) };
    if (!known) this.#documents.set(document, ours);
    this.#schema ??= new SchemaWithCoerced({ ...this.#given.toConfig(), assumeValid: true }); // takes 10 ms
    return { schema: this.#schema, document: ours, operationName, variableValues };
  }
}

function withCoercedVariables(node: DefinitionNode): DefinitionNode {
  if (node.kind !== Kind.OPERATION_DEFINITION || node.operation === OperationTypeNode.QUERY) return node;
  const variableDefinitions = node.variableDefinitions?.map(({ kind, variable }) => ({ kind, variable, type: TYPE }));
  return { ...node, ...(variableDefinitions && { variableDefinitions }) };
}
