import { type GraphQLOutputType, getNamedType, isInterfaceType, isObjectType } from 'graphql';
import { schema } from '../../../src/wiring/schema.ts';
import type { TestApp } from '../app.ts';
import { expendable } from '../expendable.ts';
import { operations } from '../operations.ts';
import { graphqlRequest } from '../requests.ts';
import { argumentsOf, type RootField, rootFields } from '../root-fields.ts';
import type { World } from '../world.ts';

type Json = Record<string, unknown>;

/** Every mutation of the schema. */
export const mutations: readonly RootField[] = rootFields.filter(({ kind }) => kind === 'mutation');

const nodeType = schema.getType('Node');
const isNode = (type: GraphQLOutputType): boolean =>
  isInterfaceType(nodeType) && schema.getPossibleTypes(nodeType).some((node) => node === getNamedType(type));

/**
 * The plain fields of a type, and those of the values inside of it. Of other resources it has the ids; what only wraps
 * a resource has its fields, too.
 */
function plainSelection(type: GraphQLOutputType, isInNode = false): string {
  const named = getNamedType(type);
  if (!isObjectType(named)) return '';
  const isInside = isInNode || isNode(named);
  const parts = Object.values(named.getFields()).flatMap((field) => {
    const inner = getNamedType(field.type);
    const isOther = isInterfaceType(inner) || inner.name.endsWith('Analytics') || (isNode(inner) && isInside);
    return isOther || field.args.length > 0 ? [] : [`${field.name} ${plainSelection(inner, isInside)}`];
  });
  return `{ __typename ${parts.join(' ')} }`;
}

/** What the service answers to one mutation. */
export interface Answer {
  /** The answer of the mutation itself. */
  result: unknown;
  /** The code of its error, if it has one. */
  code: string | null;
  /** The whole answer, for messages. */
  text: string;
}

/** Sends a document of one mutation with all plain fields of its answer. @param token `null`: nobody in particular */
export async function mutate(app: TestApp, root: RootField, given: Json, token: string | null): Promise<Answer> {
  const used = root.field.args.filter(({ name }) => given[name] !== undefined);
  const declared = used.map(({ name, type }) => `$${name}: ${type.toString()}`).join(', ');
  const passed = used.map(({ name }) => `${name}: $${name}`).join(', ');
  const call = used.length > 0 ? `${root.name}(${passed})` : root.name;
  const text = `mutation ${declared && `(${declared})`} { ${call} ${plainSelection(root.field.type)} }`;
  return ask(app, root.name, text, given, token);
}

/** The answer of a mutation that must succeed. @throws Error with the answer of one that does not */
export async function mutateOk(app: TestApp, name: string, given: Json, token: string | null): Promise<unknown> {
  const root = mutations.find((mutation) => mutation.name === name);
  if (!root) throw new Error(`There is no mutation '${name}'.`);
  const answer = await mutate(app, root, given, token);
  if (answer.code) throw new Error(`${name} with ${JSON.stringify(given)} answered ${answer.text}`);
  return answer.result;
}

async function ask(app: TestApp, name: string, query: string, variables: Json, token: string | null): Promise<Answer> {
  const { body } = await app.server.inject(graphqlRequest(query, variables, token && `Bearer ${token}`));
  const { data, errors } = JSON.parse(body) as { data?: Json | null; errors?: { extensions: { code: string } }[] };
  return { result: data?.[name] ?? null, code: errors?.[0]?.extensions.code ?? null, text: body };
}

/** The same answer, with each resource in it read anew. */
export async function readAgain(app: TestApp, result: unknown, token: string): Promise<unknown> {
  if (typeof result !== 'object' || result === null) return result;
  const { __typename: name, id, accessToken } = result as { __typename?: string; id?: string; accessToken?: string };
  const type = schema.getType(name ?? '');
  if (!isObjectType(type)) return result;
  // the token of a connection is for its provider
  const isSignIn = accessToken !== undefined && name !== 'ConnectionToken';
  if (isNode(type)) {
    const document = `query ($id: ID!) { node(id: $id) { ... on ${type.name} ${plainSelection(type)} } }`;
    const answer = await ask(app, 'node', document, { id }, token);
    if (answer.code) throw new Error(`${type.name} ${id} cannot be read: ${answer.text}`);
    return answer.result;
  }
  const fields = await Promise.all(
    Object.entries(result).map(
      async ([key, value]) => [key, await readAgain(app, value, isSignIn ? accessToken! : token)] as const,
    ),
  );
  return Object.fromEntries(fields);
}

/** Required arguments of a mutation that name something that may be changed or lost. */
export async function argumentsFor(app: TestApp, world: World, root: RootField): Promise<Json> {
  const given = argumentsOf(root, world);
  const operation = operations.find(({ rootField }) => rootField === root.name);
  if (!operation) return given;
  const { params } = await expendable(app, world, operation, 'owner');
  for (const [argument, source] of Object.entries(operation.rootArguments))
    if (source.in === 'params' && argument in given) given[argument] = params[source.name];
  return given;
}
