import type {
  FieldNode,
  FragmentDefinitionNode,
  GraphQLField,
  GraphQLFieldResolver,
  GraphQLLeafType,
  GraphQLObjectType,
  GraphQLResolveInfo,
  GraphQLSchema,
  OperationDefinitionNode,
  ResponsePath,
} from 'graphql';

export type Values = Record<string, unknown>;

/** What all runs of an operation share. */
export interface Operation {
  readonly schema: GraphQLSchema;
  readonly node: OperationDefinitionNode;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
}

/** What an object answers: its fields in their order, and an object that has their names already. */
export interface Selection {
  readonly fields: readonly Field[];
  readonly blank: () => Values;
}

/** A field of a selection with all that is known of it before it runs. */
export interface Field {
  readonly key: string;
  readonly parentType: GraphQLObjectType;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly nodes: readonly FieldNode[];
  readonly isNonNull: boolean;
  readonly resolve: GraphQLFieldResolver<unknown, unknown>;
  readonly complete: Complete;
  /** The type of a value that is read from a property of its object, and leads nowhere; else `null`. */
  readonly column: GraphQLLeafType | null;
  /** @throws GraphQLError for arguments that cannot be read */
  argumentsOf(variables: Values): Values;
  /** What an object of a type answers to this field's selection. */
  selectionOf(type: GraphQLObjectType): Selection;
}

/** One execution of an operation. */
export interface Execution {
  readonly operation: Operation;
  readonly contextValue: unknown;
  /** The fields of an object, at once. @throws what makes the object null in its place */
  fieldsOf(selection: Selection, source: unknown, path: ResponsePath | undefined): Values | Promise<unknown>;
  /**
   * A failure where a value may be null makes it null. @throws GraphQLError where it may not: then the value around it
   * is
   */
  failed(field: Field, isNonNull: boolean, path: ResponsePath, cause: unknown): null;
}

/** Turns what a resolver gave into what is answered. @throws what makes the value null in its place */
export type Complete = (
  execution: Execution,
  field: Field,
  info: GraphQLResolveInfo,
  path: ResponsePath,
  value: unknown,
) => unknown;

export const isPromise = (value: unknown): value is Promise<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
