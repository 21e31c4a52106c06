import type { FastifyRequest } from 'fastify';
import { buildSchema, type ExecutionResult, GraphQLError, type GraphQLScalarType, parse } from 'graphql';
import { beforeEach, expect, it } from 'vitest';
import { LiveStream } from '../../../src/engine/live/live-stream.ts';
import { Operations } from '../../../src/engine/path/operations.ts';
import { PersistedDocuments } from '../../../src/engine/path/persisted-documents.ts';
import { RegisteredDocuments } from '../../../src/engine/path/registered-documents.ts';
import { createEndpoint, type OperationParams, prepared } from '../../../src/engine/transport/endpoint.ts';
import { OwnDocuments } from '../../../src/engine/transport/own-documents.ts';
import { Context, type Services } from '../../../src/graphql/context.ts';
import type { AnyCaller } from '../../../src/kernel/caller.ts';

const schema = buildSchema(`
  scalar Word
  input Words { first: Word! }
  type Query { hello(name: String): String echo(words: Words!): String bug: String deep: Query }
  type Mutation { add(by: Int!): Int say(words: Words!, other: Word, more: Word = "none"): [String] }
  type Subscription { ticks(to: Int!): Int calls(words: Words!): String }
`);
const shown = (args: object) => Object.entries(args).map(([name, value]) => `${name}: ${String(value)}`);
let coerced = 0;
let sum = 0;
const bug = new Error('a bug');
async function* ticks(to: number) {
  for (let at = 1; at <= to; at++) yield { ticks: at };
}
Object.assign(schema.getType('Word') as GraphQLScalarType, {
  parseValue(value: unknown) {
    coerced += 1;
    if (typeof value !== 'string') throw new GraphQLError('Input should be a word');
    return `<${value}>`;
  },
});
const { hello, echo, bug: faulty, deep } = schema.getQueryType()!.getFields();
Object.assign(hello!, { resolve: (_root: unknown, { name }: { name?: string }) => `hello, ${name ?? 'you'}` });
Object.assign(echo!, { resolve: (_root: unknown, { words }: { words: { first: string } }) => words.first });
Object.assign(deep!, { resolve: () => ({}) });
Object.assign(faulty!, {
  resolve: () => {
    throw bug;
  },
});
Object.assign(schema.getMutationType()!.getFields().add!, {
  resolve: (_root: unknown, { by }: { by: number }) => (sum += by),
});
Object.assign(schema.getMutationType()!.getFields().say!, {
  resolve: (_root: unknown, { words, ...others }: { words: { first: string } }) => [words.first, ...shown(others)],
});
Object.assign(schema.getSubscriptionType()!.getFields().calls!, {
  subscribe: () => ticks(2),
  resolve: ({ ticks: at }: { ticks: number }, { words }: { words: { first: string } }) => `${words.first} ${at}`,
});
Object.assign(schema.getSubscriptionType()!.getFields().ticks!, {
  subscribe: (_root: unknown, { to }: { to: number }) => {
    if (to < 0) throw new GraphQLError('no way back');
    return ticks(to);
  },
});

const caller = { principal: null, request: { traceId: 'trace', ip: '::1' } } as unknown as AnyCaller;
const request = { caller, headers: { 'last-event-id': 'cursor' } } as unknown as FastifyRequest;
const services = {} as Services;
const faults: unknown[] = [];
/** What was counted of each operation. */
const counted: number[] = [];
let endpoint: ReturnType<typeof createEndpoint>;
let own: OwnDocuments;
beforeEach(() => {
  coerced = 0;
  faults.length = 0;
  counted.length = 0;
  const onFault = (error: unknown) => void faults.push(error);
  const operations = new Operations({
    schema,
    limit: { demandRest: (_caller: AnyCaller, rootFields: number) => void counted.push(rootFields) } as never,
    config: {
      graphqlIntrospection: false,
      graphqlMaxAliases: 3,
      graphqlMaxCost: 100,
      graphqlMaxDepth: 3,
      graphqlMaxTokens: 200,
    },
    onFault,
  });
  const persisted = new PersistedDocuments({
    documents: operations.documents,
    registered: new RegisteredDocuments({ read: async () => [] } as never),
    persistedOnly: false,
  });
  endpoint = createEndpoint({ schema, services, operations, persisted, onFault });
  own = new OwnDocuments(endpoint, operations.documents);
});

async function answerTo(params: OperationParams): Promise<unknown> {
  const operation = await prepared(endpoint, params, request);
  const result = 'document' in operation ? await operation.execute(operation) : { errors: operation };
  return JSON.parse(JSON.stringify(result)) as unknown;
}

const TOO_DEEP = '{ deep { deep { deep { hello } } } }';
const messages = (result: unknown) => (result as ExecutionResult).errors?.map(({ message }) => message);

it('an operation is parsed, validated, counted and run, and its context knows where a stream continues', async () => {
  const operation = await prepared(endpoint, { query: '{ hello again: hello }' }, request);
  if (!('document' in operation)) throw new Error('It was refused.');
  expect(operation.contextValue.context.lastEventId).toBe('cursor');
  expect(await operation.execute(operation)).toEqual({ data: { hello: 'hello, you', again: 'hello, you' } });
  expect(counted).toEqual([2]);
});

it('what is no document, is invalid or too large is refused before it is counted', async () => {
  expect(messages(await answerTo({ query: '{ hello "secret" }' }))).toEqual([
    'Syntax Error: Expected Name, found String.',
  ]);
  expect(messages(await answerTo({ query: '{ nothing }' }))).toEqual(['Cannot query field "nothing" on type "Query".']);
  expect(messages(await answerTo({ query: TOO_DEEP }))).toEqual([
    'The operation has fields nested deeper than 3 levels.',
  ]);
  expect(messages(await answerTo({ query: '{ __schema { description } }' }))).toHaveLength(1);
  expect(counted).toEqual([]);
});

it('variables are coerced once, by a plan too, and refused without their value', async () => {
  const query = 'query ($words: Words!) { echo(words: $words) }';
  const variables = { words: { first: 'well' } };
  await answerTo({ query, variables }); // without a plan, graphql-js coerces them again
  for (let run = 0; run < 2; run++) {
    coerced = 0;
    expect(await answerTo({ query, variables })).toEqual({ data: { echo: '<well>' } });
    expect(coerced).toBe(1);
  }
  counted.length = 0;
  expect(messages(await answerTo({ query, variables: { words: { first: 7 } } }))).toEqual([
    'Variable "$words" got an invalid value at "words.first"; Input should be a word',
  ]);
  expect(counted).toEqual([]);
});

it('those of a mutation are coerced once, whether they are given, null, left out or a default', async () => {
  const query = `mutation One($words: Words!, $other: Word, $more: Word = "own") {
    say(words: $words, other: $other, more: $more) }  query Other { hello }`;
  const said = async (variables: Record<string, unknown>) => {
    coerced = 0;
    const answer = await answerTo({ query, operationName: 'One', variables });
    return [answer, coerced];
  };
  const words = { first: 'well' };
  for (let run = 0; run < 2; run++) {
    const own = 'more: own'; // a literal is not coerced by the scalar of this test
    expect(await said({ words })).toEqual([{ data: { say: ['<well>', own] } }, 1]);
    expect(await said({ words, other: null })).toEqual([{ data: { say: ['<well>', 'other: null', own] } }, 1]);
    expect(await said({ words, other: 'a', more: 'b' })).toEqual([
      { data: { say: ['<well>', 'other: <a>', 'more: <b>'] } },
      3,
    ]);
  }
  expect(messages(await answerTo({ query, operationName: 'One', variables: {} }))).toEqual([
    'Variable "$words" of required type "Words!" was not provided.',
  ]);
});

it('those of a subscription are coerced once, whatever comes', async () => {
  const query = 'subscription ($words: Words!) { calls(words: $words) }';
  const operation = await prepared(endpoint, { query, variables: { words: { first: 'well' } } }, request);
  if (!('document' in operation)) throw new Error('It was refused.');
  await operation.subscribe(operation);
  const { live } = operation.contextValue;
  for (const at of [1, 2]) expect((await live?.take())?.result).toEqual({ data: { calls: `<well> ${at}` } });
  expect(coerced).toBe(1);
});

it('a long text is handed on as a whole, and an error beside it does not repeat it', async () => {
  const first = 'x'.repeat(5_000);
  for (const operation of ['query ($words: Words!) { echo', 'mutation ($words: Words!) { echo: say'])
    for (let run = 0; run < 2; run++) {
      coerced = 0;
      const query = `${operation}(words: $words) }`;
      const answer = await answerTo({ query, variables: { words: { first } } });
      const { echo: said } = (answer as { data: { echo: string | string[] } }).data;
      expect([said].flat()[0]).toBe(`<${first}>`);
      const wrong = await answerTo({ query, variables: { words: { first, second: 1 } } });
      expect(messages(wrong)).toEqual([
        'Variable "$words" got an invalid value; Field "second" is not defined by type "Words".',
      ]);
    }
});

it('no introspection shows the type of coerced variables', async () => {
  const types = Object.keys(schema.getTypeMap());
  const query = 'mutation ($by: Int!) { add(by: $by) }';
  expect(await answerTo({ query, variables: { by: 1 } })).toMatchObject({ data: { add: expect.any(Number) } });
  expect(Object.keys(schema.getTypeMap())).toEqual(types);
  expect(schema.getType(' coerced')).toBeUndefined();
});

it('a bug is masked and reported', async () => {
  expect(await answerTo({ query: '{ bug }' })).toMatchObject({
    data: { bug: null },
    errors: [{ path: ['bug'], extensions: { code: 'INTERNAL_SERVER_ERROR', trace_id: 'trace' } }],
  });
  expect(faults).toEqual([bug]);
});

it('a subscription gives its stream, or the result that says why there is none', async () => {
  const start = async (query: string) => {
    const operation = await prepared(endpoint, { query }, request);
    if (!('document' in operation)) throw new Error('It was refused.');
    return { result: await operation.subscribe(operation), live: operation.contextValue.live };
  };
  const { live } = await start('subscription { ticks(to: 1) }');
  expect((await live!.next()).value).toEqual({ data: { ticks: 1 } });
  const refused = await start('subscription { ticks(to: -1) }');
  expect([refused.live, messages(refused.result)]).toEqual([undefined, ['no way back']]);
  const empty = await start('subscription { ticks(to: 1) @skip(if: true) }');
  expect([empty.live, messages(empty.result)]).toEqual([
    undefined,
    ['The subscription selects nothing: @skip and @include exclude all of it.'],
  ]);
  expect(faults).toEqual([]);
});

it('own documents have no limits and are not counted, and their errors stay as they were thrown', async () => {
  const documents = [TOO_DEEP, '{ bug }', 'mutation ($by: Int!) { add(by: $by) more: add(by: 10) }'].map((text) =>
    parse(text),
  );
  for (const document of documents) own.add(document);
  const context = new Context(caller, services);
  const [deepest, failing, change] = documents;
  expect(await own.execute(deepest!, context, {})).toEqual({
    data: { deep: { deep: { deep: { hello: 'hello, you' } } } },
  });
  expect((await own.execute(failing!, context, {})).errors?.[0]?.originalError).toBe(bug);
  sum = 0;
  expect(await own.execute(change!, context, { by: 5 })).toEqual({ data: { add: 5, more: 15 } });
  expect(messages(await own.execute(change!, context, { by: 'x' }))).toEqual([
    expect.stringContaining('Variable "$by" got invalid value'),
  ]);
  expect([counted, faults]).toEqual([[], []]);
});

it('an own subscription is a stream of results with their errors as they were thrown', async () => {
  const document = parse('subscription A($to: Int!) { ticks(to: $to) }');
  own.add(document);
  const context = new Context(caller, services);
  const stream = await own.subscribe(document, context, { to: 2 });
  expect(stream).toBeInstanceOf(LiveStream);
  const results: unknown[] = [];
  for await (const result of stream as LiveStream) results.push(result);
  expect(results).toEqual([{ data: { ticks: 1 } }, { data: { ticks: 2 } }]);
  expect(messages(await own.subscribe(document, context, {}))).toEqual([expect.stringContaining('$to')]);
  const field = schema.getSubscriptionType()!.getFields().ticks!;
  field.resolve = () => {
    throw bug;
  };
  const { value } = await ((await own.subscribe(document, context, { to: 1 })) as LiveStream).next();
  delete field.resolve;
  expect(value?.errors?.[0]?.originalError).toBe(bug);
  expect([counted, faults]).toEqual([[], []]);
});
