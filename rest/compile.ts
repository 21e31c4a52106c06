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
import { facadeSchema, has, restOf } from './directives.ts';
import type { OperationSource } from './documents.ts';
import { CompileError, operationOf, problemAt, problemOf, readDocuments } from './documents.ts';
import { etagReader } from './etag.ts';
import { failureOf } from './failure.ts';
import { inputReader } from './input.ts';
import { Locator } from './locate.ts';
import type { CompiledOperation, RootArguments } from './operation.ts';
import { bodyKindOf, parametersOf, placesOf } from './parameters.ts';
import { bodyReader, responseOf } from './response.ts';
import { resumeProblems } from './resume.ts';
import { declaredFailures, isPublic, rootFieldsOf } from './root-fields.ts';
import { rewrite } from './selection.ts';
import { pathProblems, routeKey, toUrl } from './template.ts';
import { completed } from './whole.ts';

type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** What all operations are compiled with. */
interface CompileGround {
  product: GraphQLSchema;
  /** With the directives of the façade. */
  facade: () => GraphQLSchema;
  fragments: () => Fragments;
  /** The documents are known to be valid. */
  isKnown: boolean;
}

type RestDirective = NonNullable<ReturnType<typeof restOf>>;

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
  const isKnown = problems.length === 0 && wereValid(digest);
  const ground: CompileGround = {
    product: schema,
    facade: lazily(() => facadeSchema(schema)),
    fragments: lazily(() => new Map([...written].map(([name, fragment]) => [name, completed(schema, fragment)]))),
    isKnown,
  };
  if (!isKnown) problems.push(...documentProblems(ground.facade(), operations, ground.fragments()));
  const areValid = problems.length === 0;
  const compiled: CompiledOperation[] = [];
  const routes = new Map<string, OperationSource>();
  for (const source of operations) {
    // after a mistake in one operation, those of the others are looked for as well
    if (!areValid && validate(ground.facade(), documentOf(source, ground.fragments())).length > 0) continue;
    const operation = compileOperation(ground, source, problems);
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

/**
 * What a route needs, and behind it what requests need. Of documents that are known to be valid, the latter is compiled
 * when it is first asked for: most starts serve few of the routes, and compiling all was a fifth of a start.
 */
function compileOperation(
  ground: CompileGround,
  source: OperationSource,
  allProblems: string[],
): CompiledOperation | null {
  const { node } = source;
  const rest = restOf(node);
  if (!rest) {
    allProblems.push(problemAt(node, `Operation '${source.name}' has no @rest.`));
    return null;
  }
  const problems = pathProblems(node, rest.path);
  const bodyField = bodyFieldOf(ground.product, node, problems);
  const parts = lazily(() => partsOf(ground, source, rest, bodyField, problems));
  if (!ground.isKnown) parts();
  if (problems.length > 0 || !bodyField) {
    allProblems.push(...problems);
    return null;
  }
  return withParts(factsOf(ground, source, rest, bodyField), () => {
    const made = parts();
    if (!made) throw new CompileError(problems);
    return made;
  });
}

/** What a route is registered with. */
function factsOf(
  ground: CompileGround,
  source: OperationSource,
  rest: RestDirective,
  { node: field, root }: BodyField,
): RouteFacts {
  const { node } = source;
  const rootFields = rootFieldsOf(ground.product, rootOf(source, ground), node.operation);
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
    status: rest.status ?? (node.operation !== 'subscription' && has(field, 'empty') ? 204 : 200),
    maxValues: rest.maxValues ?? null,
    // a key needs somebody whose it is
    isReplayed: rest.method === 'POST' && node.operation !== 'subscription' && rest.replayed && !isPublic(rootFields),
    isPublic: isPublic(rootFields),
    mayFail: declaredFailures(rootFields),
    isAddition: source.file.startsWith('additions/'),
    takes: bodyKindOf(node),
    description: root.description ?? '',
    rootField: rootFieldOf(node)?.name.value ?? '',
    rootArguments: rootArgumentsOf(node, rest.path),
    takesIfMatch: takesVersion(root, node),
  };
}

/** The document as far as it says which root fields it selects. */
const rootOf = (source: OperationSource, { fragments }: CompileGround): DocumentNode =>
  source.node.selectionSet.selections.every(({ kind }) => kind === Kind.FIELD)
    ? { kind: Kind.DOCUMENT, definitions: [source.node] }
    : documentOf(source, fragments());

/** What requests need. @returns `null` when there are `problems` */
function partsOf(
  ground: CompileGround,
  source: OperationSource,
  rest: RestDirective,
  bodyField: BodyField | null,
  problems: string[],
): OperationParts | null {
  const { node } = source;
  const { product, isKnown } = ground;
  const fragments = ground.fragments();
  const written = documentOf(source, fragments);
  const parameters = parametersOf(ground.facade(), written, node, rest.path, problems);
  if (parameters.body && (rest.method === 'GET' || rest.method === 'DELETE'))
    problems.push(problemAt(node, `A ${rest.method} has no body.`));
  if (node.operation === 'subscription' && rest.method !== 'GET' && rest.method !== 'POST')
    problems.push(problemAt(node, 'A subscription is a GET or a POST route.'));
  const response = bodyField && responseOf(product, fragments, bodyField, node.operation, rest.status, problems);
  const isStream = node.operation === 'subscription';
  // what has a body is asked for once: nobody could resume it
  if (isStream && rest.method === 'POST' && response) response.kind = 'lines';
  if (response?.kind === 'lines' && response.eventId !== null)
    problems.push(problemAt(node, 'Lines have no id: what is asked for with POST is not resumed.'));
  const etag = bodyField && !isStream ? etagReader(product, fragments, bodyField, problems) : null;
  if (response) problems.push(...resumeProblems(node, response));
  const document = rewrite(written, etag !== null);
  // different names that are equal in REST
  if (problems.length === 0 && !isKnown)
    problems.push(...validate(product, document, [OverlappingFieldsCanBeMergedRule]).map(problemOf));
  if (problems.length > 0 || !bodyField || !response) return null;
  const reader = inputReader(parameters);
  const locator = new Locator(product, document, operationOf(document), parameters);
  return {
    ...parameters,
    response,
    document,
    etag,
    read: reader.read,
    compare: comparison(product, document, parameters, locator),
    bodyOf: bodyReader(bodyField, response, node.operation, parameters.parameters, (errors, request) =>
      failureOf(errors, locator, reader.echo, request),
    ),
  };
}

type OperationPart = 'parameters' | 'body' | 'response' | 'document' | 'etag' | 'read' | 'compare' | 'bodyOf';
type OperationParts = Pick<CompiledOperation, OperationPart>;
type RouteFacts = Omit<CompiledOperation, OperationPart>;

const withParts = (facts: RouteFacts, parts: () => OperationParts): CompiledOperation => ({
  ...facts,
  get parameters() {
    return parts().parameters;
  },
  get body() {
    return parts().body;
  },
  get response() {
    return parts().response;
  },
  get document() {
    return parts().document;
  },
  get etag() {
    return parts().etag;
  },
  get read() {
    return parts().read;
  },
  get compare() {
    return parts().compare;
  },
  get bodyOf() {
    return parts().bodyOf;
  },
});

/** What is made when it is first asked for. */
function lazily<Made>(make: () => Made): () => Made {
  let made: { value: Made } | undefined;
  return () => (made ??= { value: make() }).value;
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

function rootArgumentsOf(operation: OperationDefinitionNode, path: string): RootArguments {
  const found: Record<string, RootArguments[string]> = {};
  const placeOf = placesOf(operation, path);
  for (const { name, value } of rootFieldOf(operation)?.arguments ?? []) {
    const variable = value.kind === Kind.VARIABLE ? value.name.value : '';
    const place = placeOf.get(variable);
    if (place === 'path' || place === 'query')
      found[name.value] = { in: place === 'path' ? 'params' : 'query', name: variable };
  }
  return found;
}
