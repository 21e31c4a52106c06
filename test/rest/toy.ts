import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { FastifyInstance, InjectOptions } from 'fastify';
import Fastify from 'fastify';
import type { GraphQLFieldResolver, GraphQLSchema } from 'graphql';
import { buildSchema, execute, GraphQLError, type GraphQLScalarType, isInputObjectType, isObjectType } from 'graphql';
import { registerErrorShapes } from '../../rest/errors.ts';
import { Facade } from '../../rest/facade.ts';
import type { DocumentRunner } from '../../rest/operation.ts';
import type { RestOptions } from '../../rest/plugin.ts';
import { fastifyOptions, restPlugin } from '../../rest/plugin.ts';
import { subscribeLive } from '../../src/engine/live/live-stream.ts';
import type { Constraints } from '../../src/kernel/constraints.ts';

/** A small shop: enough of every kind of type for the façade. */
const sdl = /* GraphQL */ `
  scalar DateTime
  scalar JSON
  scalar JSONObject
  scalar Even

  enum Colour { red green blue }

  interface Named { name: String! }
  type Owner implements Named { id: ID! name: String! fullName: String }
  type Item implements Named {
    id: ID!
    name: String!
    ownerId: ID
    maxCostPer1kTokens: Float
    colour: Colour
    tags: [String!]!
    metadata: JSON
    createdAt: DateTime
    owner: Owner
    others: [Owner!]!
  }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type ItemConnection { nodes: [Item!]! pageInfo: PageInfo! totalCount: Int! }
  type Shop {
    id: ID!
    "The items, newest first."
    items("How many." first: Int = 20, after: String, colour: Colour, tags: [String!]): ItemConnection!
  }
  union Anything = Item | Owner
  type Event { id: ID! cursor: String type: String! itemId: ID data: JSON owner: Owner }

  input PartInput { partName: String! count: Int weights: [Float!] }
  input ItemInput {
    "Shown to everybody."
    displayName: String!
    maxCostPer1kTokens: Float
    count: Int
    colour: Colour
    isActive: Boolean
    tags: [String!]
    parts: [PartInput!]
    metadata: JSONObject
    anything: JSON
    dueAt: DateTime
    even: Even
    password: String
    pin: String
    size: Int! = 3
  }
  input UpdateItemInput { displayName: String description: String tags: [String!] metadata: JSONObject }
  input PictureInput { picture: ID! displayName: String! count: Int tags: [String!] metadata: JSONObject }
  input Filter { ownerId: ID minCount: Int }
  input Tree { name: String children: [Tree!] }
  input Clash { ownerId: ID owner_id: ID }

  type Query {
    "A shop."
    shop(id: ID!): Shop
    item(id: ID!): Item
    things: [Anything!]!
    search(filter: Filter!, ids: [ID!]): String!
    echo(text: String, ratio: Float, flag: Boolean, ids: [ID!], on: DateTime, header: String, count: Int! = 7): JSON
    health: String!
    tree(root: Tree): String
    fault: String!
    several: Several!
  }
  type Several { first: String second: String third: String }
  type Mutation {
    createItem(input: ItemInput!): Item!
    updateItem(id: ID!, input: UpdateItemInput!): JSON
    renameItem(id: ID!, input: UpdateItemInput!): JSON
    addPicture(id: ID!, input: PictureInput!): JSON
    removeItem(id: ID!): Boolean
    clash(input: Clash): String
    plant(root: Tree!): String
  }
  type Subscription { events(itemId: ID!, last: Int, after: String): Event! }
`;

type Resolvers = Record<string, Record<string, GraphQLFieldResolver<never, object>>>;

export interface Toy {
  resolvers?: Resolvers;
  /** `Type.field.argument` or `Input.field` -> constraints. */
  constraints?: Record<string, Constraints>;
  /** Root fields that strangers may use. */
  publicFields?: string[];
  subscribe?: GraphQLFieldResolver<unknown, object>;
}

export function toySchema({
  resolvers = {},
  constraints = {},
  publicFields = ['health'],
  subscribe,
}: Toy = {}): GraphQLSchema {
  const schema = buildSchema(sdl);
  for (const [type, fields] of Object.entries(resolvers)) {
    const object = schema.getType(type);
    if (!isObjectType(object)) throw new Error(`no object type ${type}`);
    for (const [name, resolve] of Object.entries(fields)) Object.assign(object.getFields()[name] ?? {}, { resolve });
  }
  for (const root of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]) {
    for (const field of Object.values(root?.getFields() ?? {}))
      field.extensions = { access: publicFields.includes(field.name) ? 'public' : 'signed-in' };
  }
  for (const [path, value] of Object.entries(constraints)) {
    const [typeName = '', fieldName = '', argument] = path.split('.');
    const type = schema.getType(typeName);
    const target = isInputObjectType(type)
      ? type.getFields()[fieldName]
      : isObjectType(type)
        ? type.getFields()[fieldName]?.args.find((arg) => arg.name === argument)
        : undefined;
    if (!target) throw new Error(`no input ${path}`);
    target.extensions = { constraints: value };
  }
  const scalar = (name: string, behaviour: Partial<GraphQLScalarType>) =>
    Object.assign(schema.getType(name) ?? {}, behaviour);
  scalar('JSON', { extensions: { jsonType: 'any' } });
  scalar('JSONObject', { extensions: { jsonType: 'object' } });
  scalar('DateTime', {
    extensions: { jsonType: 'date-time' },
    serialize: (value) => (value instanceof Date ? value.toISOString() : value),
    parseValue(value) {
      const date = new Date(String(value));
      if (Number.isNaN(date.getTime()))
        throw new GraphQLError('Input should be a valid datetime, invalid character or missing part');
      return date;
    },
  });
  scalar('Even', {
    extensions: { jsonType: 'any' },
    parseValue(value) {
      if (typeof value !== 'number' || value % 2 !== 0) throw new GraphQLError('the number must be even');
      return value;
    },
  });
  const events = schema.getSubscriptionType()?.getFields().events;
  if (events && subscribe) Object.assign(events, { subscribe, resolve: (event: unknown) => event });
  return schema;
}

/** Writes operation documents into a folder of their own. A string is the content of `shop.graphql`. */
export function folderOf(documents: string | Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), 'operations-'));
  for (const [name, text] of Object.entries(
    typeof documents === 'string' ? { 'shop.graphql': documents } : documents,
  )) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  folders.push(dir);
  return dir;
}

const folders: string[] = [];
export function removeFolders(): void {
  for (const dir of folders.splice(0)) rmSync(dir, { recursive: true });
}

/** Runs documents as graphql-js does. */
export const toyRunner = (schema: GraphQLSchema): DocumentRunner => ({
  add: () => undefined,
  execute: (document, contextValue, variableValues) => execute({ schema, document, contextValue, variableValues }),
  subscribe: (document, contextValue, variableValues) =>
    subscribeLive({ schema, document, contextValue, variableValues }, (result) => result),
});

export interface ToyServer {
  server: FastifyInstance;
  faults: unknown[];
  contexts: { operation: unknown; principal: unknown }[];
  /**
   * The answer: status, headers and the parsed body (`undefined` without one). As a signed-in caller, unless told
   * otherwise.
   */
  send(
    options: InjectOptions & { as?: string | null },
  ): Promise<{ status: number; body: unknown; text: string; headers: Record<string, unknown> }>;
  get(url: string): Promise<{ status: number; body: unknown }>;
  post(url: string, body: unknown): Promise<{ status: number; body: unknown }>;
}

export async function toyServer(
  documents: string | Record<string, string>,
  toy: Toy = {},
  more: Partial<RestOptions> = {},
): Promise<ToyServer> {
  const server = Fastify(fastifyOptions);
  const faults: unknown[] = [];
  const contexts: ToyServer['contexts'] = [];
  const onFault = (error: unknown) => faults.push(error);
  registerErrorShapes(server, { onFault });
  const schema = toySchema(toy);
  await server.register(restPlugin, {
    facade: new Facade(schema, folderOf(documents)),
    runner: toyRunner(schema),
    principal: (request) => request.headers.authorization ?? null,
    context: (_request, principal, operation) => {
      contexts.push({ operation, principal });
      return {};
    },
    onFault,
    info: { title: 'Shop', version: '1.0.0', description: 'A toy.' },
    ...more,
  });
  await server.ready();
  const send: ToyServer['send'] = async ({ as = 'somebody', ...options }) => {
    const answer = await server.inject({
      ...options,
      headers: { ...(as === null ? {} : { authorization: as }), ...options.headers },
    });
    const isJson = String(answer.headers['content-type']).startsWith('application/json');
    return {
      status: answer.statusCode,
      body: isJson && answer.body ? (JSON.parse(answer.body) as unknown) : undefined,
      text: answer.body,
      headers: answer.headers,
    };
  };
  const brief = async (options: InjectOptions) => {
    const { status, body } = await send(options);
    return { status, body };
  };
  return {
    server,
    faults,
    contexts,
    send,
    get: (url) => brief({ url }),
    post: (url, body) =>
      brief({ method: 'POST', url, payload: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  };
}
