import type { DocumentNode, FieldNode, FragmentDefinitionNode, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import {
  Kind,
  NoUnusedFragmentsRule,
  OverlappingFieldsCanBeMergedRule,
  specifiedRules,
  validate,
  visit,
} from 'graphql';
import { comparison } from './arguments.ts';
import { type BodyField, bodyFieldOf, misplaced } from './body-field.ts';
import { facadeSchema, restOf } from './directives.ts';
import type { OperationSource } from './documents.ts';
import { CompileError, operationOf, problemAt, problemOf, readDocuments } from './documents.ts';
import { etagReader } from './etag.ts';
import { failureOf } from './failure.ts';
import { inputReader } from './input.ts';
import { Locator } from './locate.ts';
import type { CompiledOperation, RootArguments } from './operation.ts';
import type { Parameters } from './parameters.ts';
import { parametersOf } from './parameters.ts';
import { bodyReader, responseOf } from './response.ts';
import { resumeProblems } from './resume.ts';
import { declaredFailures, isPublic, rootFieldsOf } from './root-fields.ts';
import { rewrite } from './selection.ts';
import { pathProblems, routeKey, toUrl } from './template.ts';
import { completed } from './whole.ts';

type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

interface GraphQLSchemas {
  product: GraphQLSchema;
  facade: GraphQLSchema;
}

/**
 * Compiles every operation document below `dir`.
 * @param wereValid whether documents with this digest are known to be valid against this very schema: that is most of
 * the work
 * @throws CompileError naming file, line and column of every mistake found
 */
export function compileOperations(
  schema: GraphQLSchema,
  dir: string,
  wereValid: (digest: string) => boolean = () => false,
): CompiledOperation[] {
  const { operations, fragments: written, problems, digest } = readDocuments(dir);
  const fragments = new Map([...written].map(([name, fragment]) => [name, completed(schema, fragment)]));
  const areKnown = problems.length === 0 && wereValid(digest);
  const schemas = { product: schema, facade: facadeSchema(schema) };
  if (!areKnown) problems.push(...documentProblems(schemas.facade, operations, fragments));
  const areValid = problems.length === 0;
  const compiled: CompiledOperation[] = [];
  const routes = new Map<string, OperationSource>();
  for (const source of operations) {
    const document = documentOf(source, fragments);
    // after a mistake in one operation, those of the others are looked for as well
    if (!areValid && validate(schemas.facade, document).length > 0) continue;
    const operation = compileOperation(schemas, source, document, fragments, problems, areKnown);
    if (!operation) continue;
    const key = routeKey(operation.method, operation.path);
    const other = routes.get(key);
    if (other)
      problems.push(
        problemAt(
          source.node,
          `The route ${operation.method} ${operation.path} is already that of ${problemAt(other.node, other.name)}.`,
        ),
      );
    routes.set(key, source);
    compiled.push(operation);
  }
  if (problems.length > 0) throw new CompileError(problems);
  return compiled;
}

/** Everything is validated as one document: apart, each operation would validate its fragments again. */
function documentProblems(
  facade: GraphQLSchema,
  operations: readonly OperationSource[],
  fragments: Fragments,
): string[] {
  const shared = [...fragments.values()];
  const definitions = [...shared, ...operations.map(({ node }) => node)];
  const rules = specifiedRules.filter((rule) => rule !== NoUnusedFragmentsRule);
  const problems = validate(facade, { kind: Kind.DOCUMENT, definitions }, rules, { maxErrors: 1_000 }).map(problemOf);
  for (const definition of shared) {
    visit(definition, {
      Field(node: FieldNode) {
        problems.push(...misplaced(node));
      },
    });
  }
  return problems;
}

/** The operation with the fragments that it uses, directly or indirectly. */
function documentOf({ node }: OperationSource, fragments: Fragments): DocumentNode {
  const used = new Set<FragmentDefinitionNode>();
  const follow = (from: OperationSource['node'] | FragmentDefinitionNode) =>
    visit(from, {
      FragmentSpread({ name }) {
        const fragment = fragments.get(name.value);
        if (!fragment || used.has(fragment)) return;
        used.add(fragment);
        follow(fragment);
      },
    });
  follow(node);
  return { kind: Kind.DOCUMENT, definitions: [node, ...used] };
}

function compileOperation(
  schemas: GraphQLSchemas,
  source: OperationSource,
  written: DocumentNode,
  fragments: Fragments,
  allProblems: string[],
  isKnown: boolean,
): CompiledOperation | null {
  const { node } = source;
  const rest = restOf(node);
  if (!rest) {
    allProblems.push(problemAt(node, `Operation '${source.name}' has no @rest.`));
    return null;
  }
  const problems = pathProblems(node, rest.path);
  const parameters = parametersOf(schemas.facade, written, node, rest.path, problems);
  if (parameters.body && (rest.method === 'GET' || rest.method === 'DELETE'))
    problems.push(problemAt(node, `A ${rest.method} has no body.`));
  if (node.operation === 'subscription' && rest.method !== 'GET')
    problems.push(problemAt(node, 'A subscription is a GET route.'));
  const bodyField = bodyFieldOf(schemas.product, node, problems);
  const response =
    bodyField && responseOf(schemas.product, fragments, bodyField, node.operation, rest.status, problems);
  const isStream = node.operation === 'subscription';
  const etag = bodyField && !isStream ? etagReader(schemas.product, fragments, bodyField, problems) : null;
  if (response) problems.push(...resumeProblems(node, response));
  const document = rewrite(written, etag !== null);
  // different names that are equal in REST
  if (problems.length === 0 && !isKnown)
    problems.push(...validate(schemas.product, document, [OverlappingFieldsCanBeMergedRule]).map(problemOf));
  if (problems.length > 0 || !bodyField || !response) {
    allProblems.push(...problems);
    return null;
  }
  const operation = operationOf(document);
  const reader = inputReader(parameters);
  const rootFields = rootFieldsOf(schemas.product, written, node.operation);
  const locator = new Locator(schemas.product, document, operation, parameters);
  return {
    name: source.name,
    type: node.operation,
    method: rest.method,
    path: rest.path,
    url: toUrl(rest.path),
    file: source.file,
    line: source.line,
    comment: source.comment,
    errors: rest.errors,
    status: rest.status ?? (response.kind === 'empty' ? 204 : 200),
    maxValues: rest.maxValues ?? null,
    // a key needs somebody whose it is
    isReplayed: rest.method === 'POST' && rest.replayed && !isPublic(rootFields),
    isPublic: isPublic(rootFields),
    mayFail: declaredFailures(rootFields),
    isAddition: source.file.startsWith('additions/'),
    ...parameters,
    response,
    description: bodyField.root.description ?? '',
    document,
    rootField: rootFieldOf(operation)?.name.value ?? '',
    rootArguments: rootArgumentsOf(rootFieldOf(operation), parameters),
    takesIfMatch: takesVersion(bodyField.root, operation),
    etag,
    read: reader.read,
    compare: comparison(schemas.product, document, parameters, locator),
    bodyOf: bodyReader(bodyField, response, node.operation, parameters.parameters, (errors, request) =>
      failureOf(errors, locator, reader.echo, request),
    ),
  };
}

/** Whether the root field takes `expectedVersion` and the document does not set it: then `If-Match` does. */
const takesVersion = ({ extensions }: BodyField['root'], operation: OperationDefinitionNode): boolean =>
  extensions.versionArgument !== undefined &&
  operation.selectionSet.selections.every(
    (node) =>
      node.kind !== Kind.FIELD || !node.arguments?.some(({ name }) => name.value === extensions.versionArgument),
  );

function rootFieldOf(operation: OperationDefinitionNode): FieldNode | null {
  return operation.selectionSet.selections.find((selection) => selection.kind === Kind.FIELD) ?? null;
}

function rootArgumentsOf(field: FieldNode | null, { parameters }: Parameters): RootArguments {
  const found: Record<string, RootArguments[string]> = {};
  for (const { name, value } of field?.arguments ?? []) {
    const variable = value.kind === Kind.VARIABLE ? value.name.value : null;
    const parameter = parameters.find((candidate) => candidate.name === variable);
    if (parameter && parameter.in !== 'header')
      found[name.value] = { in: parameter.in === 'path' ? 'params' : 'query', name: parameter.wireName };
  }
  return found;
}
