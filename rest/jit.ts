import type {
  DocumentNode,
  ExecutionResult,
  GraphQLInputType,
  OperationDefinitionNode,
  TypeNode,
  ValueNode,
  VariableDefinitionNode,
} from 'graphql';
import {
  GraphQLError,
  GraphQLScalarType,
  GraphQLSchema,
  getVariableValues,
  Kind,
  specifiedScalarTypes,
  TypeInfo,
  valueFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';

const coercedScalar = new GraphQLScalarType({
  name: '_Coerced',
  serialize: (value) => value,
  parseValue: (value) => value,
});
const coercedType: TypeNode = { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: coercedScalar.name } };
const builtIn = new Set(specifiedScalarTypes.map((type) => type.name));

const nameOf = (type: TypeNode): string => (type.kind === Kind.NAMED_TYPE ? type.name.value : nameOf(type.type));
const usesVariable = (node: ValueNode): boolean =>
  node.kind === Kind.VARIABLE ||
  (node.kind === Kind.LIST && node.values.some(usesVariable)) ||
  (node.kind === Kind.OBJECT && node.fields.some((field) => usesVariable(field.value)));

/** The schema that graphql-jit sees: the same types and one scalar more, which lets a value through as it is. */
export function jitSchema(schema: GraphQLSchema): GraphQLSchema {
  const config = schema.toConfig();
  return new GraphQLSchema({ ...config, types: [...config.types, coercedScalar] });
}

/** Runs an operation. An error in the variables comes back as errors, like one of a resolver. */
export type Run = (context: object, variables: Record<string, unknown>) => Promise<ExecutionResult> | ExecutionResult;

interface Lifted {
  name: string;
  node: ValueNode;
  type: GraphQLInputType;
}

/**
 * Compiles a query whose variables graphql-js reads and whose plan takes them as they are. graphql-jit's own reading is
 * wrong in 0.8.9: it makes null of what was left out, and refuses a non-null variable with a default that was left out.
 */
export function compilePlan(schema: GraphQLSchema, forJit: GraphQLSchema, document: DocumentNode): Run {
  const declared = operationOf(document).variableDefinitions ?? [];
  const { rewritten, lifted } = liftLiterals(schema, document);
  const operation = operationOf(rewritten);
  const variableDefinitions: VariableDefinitionNode[] = [
    ...declared.map((definition) =>
      builtIn.has(nameOf(definition.type)) ? definition : { ...definition, defaultValue: undefined, type: coercedType },
    ),
    ...lifted.map(({ name }) => ({
      kind: Kind.VARIABLE_DEFINITION as const,
      variable: { kind: Kind.VARIABLE as const, name: { kind: Kind.NAME as const, value: name } },
      type: coercedType,
    })),
  ];
  const definitions = rewritten.definitions.map((definition) =>
    definition === operation ? { ...operation, variableDefinitions } : definition,
  );
  const plan = compileQuery(forJit, { ...rewritten, definitions });
  if (!isCompiledQuery(plan))
    throw new Error(`graphql-jit: ${plan.errors?.[0]?.message ?? 'the operation does not compile'}`);
  return (context, raw) => {
    const read = getVariableValues(schema, declared, raw, { maxErrors: 50 });
    if (read.errors) return { errors: read.errors };
    const variables: Record<string, unknown> = { ...read.coerced };
    for (const { name, node, type } of lifted) {
      const value: unknown = valueFromAST(node, type, read.coerced);
      if (value === undefined)
        return { errors: [new GraphQLError('An argument has an invalid value.', { nodes: node })] };
      variables[name] = value;
    }
    return plan.query(undefined, context, variables);
  };
}

/** Object and list literals that hold variables become variables themselves, which graphql-js fills in. */
function liftLiterals(schema: GraphQLSchema, document: DocumentNode): { rewritten: DocumentNode; lifted: Lifted[] } {
  const lifted: Lifted[] = [];
  const info = new TypeInfo(schema);
  const rewritten = visit(
    document,
    visitWithTypeInfo(info, {
      Argument(argument) {
        const type = info.getInputType();
        if (!type || argument.value.kind === Kind.VARIABLE || !usesVariable(argument.value)) return undefined;
        const name = `__${lifted.length}`;
        lifted.push({ name, node: argument.value, type });
        return { ...argument, value: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } } };
      },
    }),
  );
  return { rewritten, lifted };
}

export function operationOf(document: DocumentNode): OperationDefinitionNode {
  const operation = document.definitions.find((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  if (!operation) throw new Error('The document has no operation.');
  return operation;
}
