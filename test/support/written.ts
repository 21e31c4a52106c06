import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  isCompositeType,
  isEnumType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type OperationTypeNode,
  parse,
  print,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { expect } from 'vitest';
import type { CompiledOperation } from '../../rest/operation.ts';
import { operationsDir } from '../../src/paths.ts';
import { schema } from '../../src/wiring/schema.ts';
import type { TestApp } from './app.ts';
import { snakeCase } from './names.ts';
import { graphqlRequest, type Parts, toGraphQL } from './requests.ts';

/*
 * A second reading of the documents, without the façade's code: parse them, remove its directives, send them to
 * /graphql, then rename and flatten the answer. The result must equal the answer of REST.
 */
const sources = readdirSync(operationsDir, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.graphql'))
  .map((file) => parse(readFileSync(path.join(operationsDir, file), 'utf8')));
const definitions = sources.flatMap((document) => document.definitions);
const fragments = new Map(
  definitions
    .filter((node): node is FragmentDefinitionNode => node.kind === Kind.FRAGMENT_DEFINITION)
    .map((node) => [node.name.value, wholeOf(node)]),
);
const written = new Map(
  definitions
    .filter((node): node is OperationDefinitionNode => node.kind === Kind.OPERATION_DEFINITION)
    .map((node) => [node.name!.value, node]),
);
const real = new Set(
  schema
    .getDirectives()
    .map(({ name }) => name)
    .filter((name) => name !== 'oneOf'),
);

type Json = Record<string, unknown>;

/** A fragment of a whole type, with the texts, numbers and JSON of the type that it does not name. */
function wholeOf(node: FragmentDefinitionNode): FragmentDefinitionNode {
  if (!node.directives?.some(({ name }) => name.value === 'whole')) return node;
  const type = schema.getType(node.typeCondition.name.value) as GraphQLObjectType;
  const named = print(node.selectionSet).match(/\w+/g)!;
  const others = Object.keys(type.getFields()).filter((name) => {
    const { args, type: of } = type.getFields()[name]!;
    return args.length === 0 && !isCompositeType(getNamedType(of)) && !named.includes(name);
  });
  const rest = parse(`{ ${others.join(' ')} }`).definitions[0] as OperationDefinitionNode;
  const selections = [...node.selectionSet.selections, ...rest.selectionSet.selections];
  return { ...node, directives: [], selectionSet: { ...node.selectionSet, selections } };
}

/** What GraphQL answers. */
export interface GraphQLAnswer {
  data?: Json | null;
  errors?: { extensions: { code: string; details: { issues?: { path: unknown[]; type: string; msg: string }[] } } }[];
}

/** Asks over `/graphql` what the document of a route asks, with what a request of the route would give. */
export async function askWritten(
  app: TestApp,
  operation: CompiledOperation,
  { headers, ...parts }: Parts,
): Promise<GraphQLAnswer> {
  const { authorization, ...others } = headers;
  const { query, variables } = writtenRequest(operation, { headers, ...parts });
  const request = graphqlRequest(query, variables, authorization);
  const answer = await app.server.inject({ ...request, headers: { ...others, ...request.headers } });
  return answer.json<GraphQLAnswer>();
}

/** The document of a route as a client of GraphQL would write it, with what a request of the route would give. */
export const writtenRequest = (operation: CompiledOperation, parts: Parts): { query: string; variables: Json } => ({
  query: documentOf(operation),
  variables: variablesOf(operation, parts),
});

/** What REST must answer where GraphQL answered this. */
export function restBodyOf({ name, type, response }: CompiledOperation, data: Json): unknown {
  const body = bodyIn(data, written.get(name)!.selectionSet, schema.getRootType(type as OperationTypeNode)!);
  if (response.redirect === null) return body;
  const { [response.redirect]: _address, ...rest } = body as Json;
  return rest;
}

const isMarked = (node: FieldNode, directive: string) =>
  node.directives?.some(({ name }) => name.value === directive) ?? false;

/** The operation with its fragments, without the directives of the façade. */
function documentOf({ name }: CompiledOperation): string {
  const operation = written.get(name)!;
  const used = new Map<string, FragmentDefinitionNode>();
  const follow = (node: OperationDefinitionNode | FragmentDefinitionNode) => {
    visit(node, {
      FragmentSpread: ({ name: { value } }) => {
        const fragment = fragments.get(value)!;
        if (used.has(value)) return;
        used.set(value, fragment);
        follow(fragment);
      },
    });
  };
  follow(operation);
  const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...used.values()] };
  return print(visit(document, { Directive: (node) => (real.has(node.name.value) ? undefined : null) }));
}

function variablesOf(operation: CompiledOperation, { params, query, body }: Parts): Json {
  const numbers = new Set(['Int', 'Float']);
  const given: Json = { ...params };
  for (const { name, type, wireName } of operation.parameters) {
    const text = query[wireName];
    if (text !== undefined)
      given[name] = numbers.has(getNamedType(type).name)
        ? Number(text)
        : getNamedType(type).name === 'Boolean'
          ? text === 'true'
          : text;
  }
  return operation.body ? { ...given, [operation.body.name]: toGraphQL(body, operation.body.type) } : given;
}

/** An answer of GraphQL in the form of REST. */
function translate(value: unknown, type: GraphQLOutputType, selection: SelectionSetNode | undefined): unknown {
  const named = getNamedType(type);
  if (Array.isArray(value)) return value.map((item) => translate(item, type, selection));
  // REST spells the values of enums in lower case, unless they are words
  if (isEnumType(named) && !named.extensions.isWords && typeof value === 'string')
    return expect.stringMatching(new RegExp(`^${value}$`, 'i'));
  if (!isObjectType(named) || !selection || typeof value !== 'object' || value === null) return value;
  const result: Json = {};
  for (const node of fieldsOf(selection)) {
    const key = node.alias?.value ?? node.name.value;
    const field = named.getFields()[node.name.value]!;
    const inner = translate((value as Json)[key], field.type, node.selectionSet);
    if (isMarked(node, 'flatten')) Object.assign(result, inner);
    else result[node.alias ? key : snakeCase(key)] = inner;
  }
  return result;
}

function fieldsOf(selection: SelectionSetNode): FieldNode[] {
  return selection.selections.flatMap((node) => {
    // a version is a header
    if (node.kind === Kind.FIELD) return isMarked(node, 'etag') && !node.selectionSet ? [] : node;
    const inner = node.kind === Kind.FRAGMENT_SPREAD ? fragments.get(node.name.value)!.selectionSet : node.selectionSet;
    return fieldsOf(inner);
  });
}

/** Goes down to the field that is the body. */
function bodyIn(data: Json, selection: SelectionSetNode, type: GraphQLObjectType): unknown {
  for (const node of fieldsOf(selection)) {
    const inner = data[node.alias?.value ?? node.name.value];
    const field = type.getFields()[node.name.value]!;
    if (isMarked(node, 'nothing')) return null;
    if (isMarked(node, 'body')) return translate(inner, field.type, node.selectionSet);
    if (node.selectionSet)
      return bodyIn(inner as Json, node.selectionSet, getNamedType(field.type) as GraphQLObjectType);
  }
  throw new Error('no field has @body');
}
