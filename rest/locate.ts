import type {
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  GraphQLCompositeType,
  GraphQLError,
  GraphQLField,
  GraphQLInputType,
  GraphQLSchema,
  OperationDefinitionNode,
  SelectionSetNode,
  ValueNode,
} from 'graphql';
import {
  getNamedType,
  getNullableType,
  isCompositeType,
  isInputObjectType,
  isListType,
  Kind,
  typeFromAST,
} from 'graphql';
import type { InputIssue } from '../src/kernel/errors.ts';
import { snakeCase } from '../src/kernel/snake-case.ts';
import type { RequestParts } from './input.ts';
import type { Parameters } from './parameters.ts';

type Path = readonly (string | number)[];

interface LocatedField {
  node: FieldNode;
  field: GraphQLField<unknown, unknown> | undefined;
  /** Position in the document of each step of the error's path. It gives the order of the answers. */
  rank: number[];
}

/** An invalid input as REST shows it: its location, and the value that the client sent. */
export interface LocatedIssue extends InputIssue {
  loc: (string | number)[];
}

const places = ['path', 'query', 'header', 'body'];
/** Sorts into the order path, query, header, body. */
export const byPlace = (a: { loc: Path }, b: { loc: Path }): number =>
  places.indexOf(String(a.loc[0])) - places.indexOf(String(b.loc[0]));
const container = { path: 'params', query: 'query', header: 'headers', body: 'body' } as const;

/** Finds the places in the document and in the request that errors of an execution refer to. */
export class Locator {
  readonly #schema: GraphQLSchema;
  readonly #operation: OperationDefinitionNode;
  readonly #root: GraphQLCompositeType;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #parameters: Parameters;

  /** `document` is the executed document, with the REST names as aliases. */
  constructor(
    schema: GraphQLSchema,
    document: DocumentNode,
    operation: OperationDefinitionNode,
    parameters: Parameters,
  ) {
    const root = schema.getRootType(operation.operation);
    if (!root) throw new Error(`The schema has no ${operation.operation} type.`);
    this.#schema = schema;
    this.#operation = operation;
    this.#root = root;
    this.#fragments = new Map(
      document.definitions.flatMap((node) =>
        node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node] as const] : [],
      ),
    );
    this.#parameters = parameters;
  }

  /** The errors in the order of their paths: by position in the document, and by index within a list. */
  sort(errors: readonly GraphQLError[]): GraphQLError[] {
    const ranked = errors.map((error) => ({ error, rank: this.#find(error.path ?? [])?.rank ?? [] }));
    return ranked.sort((a, b) => compare(a.rank, b.rank)).map(({ error }) => error);
  }

  /** Locations in the request of the issues of one error, in the order path, query, header, body. */
  locate(error: Pick<GraphQLError, 'path'>, issues: readonly InputIssue[], request: RequestParts): LocatedIssue[] {
    const found = this.#find(error.path ?? []);
    const located = issues.map((issue) => {
      const loc = this.#argument(found, issue.path) ?? this.#guess(issue.path);
      return { ...issue, loc, input: issue.input === undefined ? valueAt(request, loc) : issue.input };
    });
    return located.sort(byPlace);
  }

  /** The location of a variable in the request. `rest` is the remaining path, in GraphQL names. */
  variable(name: string, rest: Path, type?: GraphQLInputType): (string | number)[] | null {
    const { parameters, body } = this.#parameters;
    if (body?.name === name) return ['body', ...renamed(rest, body.type)];
    const parameter = parameters.find((candidate) => candidate.name === name);
    return parameter ? [parameter.in, parameter.wireName, ...(type ? renamed(rest, type) : rest)] : null;
  }

  #argument(found: LocatedField | null, [name, ...rest]: Path): (string | number)[] | null {
    const argument = found?.node.arguments?.find((candidate) => candidate.name.value === name);
    const definition = found?.field?.args.find((candidate) => candidate.name === name);
    return argument && definition ? this.#value(argument.value, definition.type, rest) : null;
  }

  #value(node: ValueNode, type: GraphQLInputType, rest: Path): (string | number)[] | null {
    if (node.kind === Kind.VARIABLE) return this.variable(node.name.value, rest, type);
    const [step, ...more] = rest;
    const nullable = getNullableType(type);
    if (node.kind === Kind.OBJECT && isInputObjectType(nullable)) {
      const child = node.fields.find((field) => field.name.value === step);
      const field = nullable.getFields()[String(step)];
      return child && field ? this.#value(child.value, field.type, more) : null;
    }
    const item = node.kind === Kind.LIST && typeof step === 'number' ? node.values[step] : undefined;
    return item && isListType(nullable) ? this.#value(item, nullable.ofType as GraphQLInputType, more) : null;
  }

  /** For an issue that names no argument of the field: the parameter with that name, else the body. */
  #guess(path: Path): (string | number)[] {
    const names = path.map((part) => (typeof part === 'string' ? snakeCase(part) : part));
    const parameter = this.#parameters.parameters.find((candidate) => candidate.wireName === names[0]);
    if (parameter) return [parameter.in, ...names];
    return [this.#parameters.body ? 'body' : 'query', ...names];
  }

  #find(path: Path): LocatedField | null {
    let sets: [GraphQLCompositeType, SelectionSetNode][] = [[this.#root, this.#operation.selectionSet]];
    let found: LocatedField | null = null;
    const rank: number[] = [];
    for (const step of path) {
      if (typeof step === 'number') {
        rank.push(step);
        continue;
      }
      const fields = sets.flatMap(([type, set]) => this.#fieldsOf(type, set));
      const index = fields.findIndex(({ node }) => (node.alias ?? node.name).value === step);
      const match = fields[index];
      if (!match) return found;
      rank.push(index);
      found = { ...match, rank };
      sets = fields.flatMap(({ node, field }) => {
        const named = getNamedType(field?.type);
        const isSame = (node.alias ?? node.name).value === step;
        return isSame && node.selectionSet && isCompositeType(named) ? [[named, node.selectionSet]] : [];
      });
    }
    return found;
  }

  #fieldsOf(
    type: GraphQLCompositeType,
    set: SelectionSetNode,
  ): { node: FieldNode; field: GraphQLField<unknown, unknown> | undefined }[] {
    return set.selections.flatMap((node) => {
      if (node.kind === Kind.FIELD)
        return [{ node, field: 'getFields' in type ? type.getFields()[node.name.value] : undefined }];
      const fragment = node.kind === Kind.FRAGMENT_SPREAD ? this.#fragments.get(node.name.value) : node;
      const condition = fragment?.typeCondition ? typeFromAST(this.#schema, fragment.typeCondition) : type;
      return fragment && isCompositeType(condition) ? this.#fieldsOf(condition, fragment.selectionSet) : [];
    });
  }
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Translates field names of input objects to REST names. Keys of free JSON values stay as they are. */
function renamed([step, ...rest]: Path, type: GraphQLInputType): (string | number)[] {
  if (step === undefined) return [];
  const nullable = getNullableType(type);
  if (typeof step === 'number' && isListType(nullable))
    return [step, ...renamed(rest, nullable.ofType as GraphQLInputType)];
  const field = isInputObjectType(nullable) ? nullable.getFields()[String(step)] : undefined;
  return field ? [snakeCase(field.name), ...renamed(rest, field.type)] : [step, ...rest];
}

function valueAt(request: RequestParts, [place, ...rest]: Path): unknown {
  let value: unknown = request[container[place as keyof typeof container]];
  for (const step of rest) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
      return typeof step === 'number' ? value : null;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}
