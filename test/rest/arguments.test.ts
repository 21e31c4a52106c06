import { buildSchema, GraphQLError, type GraphQLScalarType } from 'graphql';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import type { RequestParts } from '../../rest/input.ts';
import type { ArgumentIssues } from '../../src/kernel/constraints.ts';
import type { InputIssue } from '../../src/kernel/errors.ts';
import { folderOf, removeFolders } from './toy.ts';

afterAll(removeFolders);

const schema = buildSchema(`
  scalar Day
  enum Order { rising falling }
  input Span { x: [Int!] x1: Int until: Int }
  type Query {
    listEvents(from: Int, until: Int = 9, order: Order = rising, on: Day, ids: [ID!], days: [Day!]): Int
    plan(from: Int): Int
    free(from: Int): Int
    alone(from: Int): Int
  }
  type Mutation { move(least: Int, span: Span, spare: Span = { until: 4 }): Int }
  type Subscription { ticks(from: Int): Int }
`);
Object.assign(schema.getType('Day')!, {
  extensions: { jsonType: 'date-time' },
  parseValue(value: unknown) {
    if (value === 'never') throw new GraphQLError('no such day');
    return { day: value };
  },
} satisfies Partial<GraphQLScalarType>);

/** What the schema was asked about, and what it then says is wrong. */
let asked: { field: string; args: object; context: object }[];
let wrong: InputIssue[];
const issuesOf: ArgumentIssues = ({ name }) =>
  name === 'alone'
    ? null
    : (args, context) => {
        asked.push({ field: name, args, context });
        return wrong;
      };
for (const root of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()])
  for (const field of Object.values(root!.getFields()))
    if (field.name !== 'free') Object.assign(field.extensions, { argumentIssues: issuesOf });
beforeEach(() => {
  asked = [];
  wrong = [];
});

const GET = '@rest(method: GET, path: "/v1/x")';
const context = { of: 'this request' };

/** The failures of a request, as the caller sees them. */
function compared(document: string, request: Partial<RequestParts> = {}) {
  const [operation] = compileOperations(schema, folderOf(document));
  const parts: RequestParts = { params: {}, query: {}, headers: {}, body: undefined, ...request };
  const input = operation!.read(parts);
  operation!.compare(context, input, parts);
  return input.issues.items;
}
/** The arguments that the schema compares. */
function argumentsOf(document: string, request?: Partial<RequestParts>) {
  compared(document, request);
  return asked.at(-1)?.args;
}
const listing = (variables: string, values: string) =>
  `query List(${variables}) ${GET} { listEvents(${values}) @body }`;

it('asks the schema about the root field, in the context of the request', () => {
  expect(compared(listing('$from: Int', 'from: $from'), { query: { from: '3' } })).toEqual([]);
  expect(asked).toEqual([{ field: 'listEvents', args: expect.objectContaining({ from: 3 }) as object, context }]);
});

it('a query, a mutation and a subscription have such arguments', () => {
  expect(argumentsOf(`query A($from: Int) ${GET} { plan(from: $from) @body }`, { query: { from: '1' } })).toEqual({
    from: 1,
  });
  expect(
    argumentsOf(`mutation A($least: Int) @rest(method: POST, path: "/v1/x") { move(least: $least) @body }`, {
      query: { least: '2' },
    }),
  ).toMatchObject({ least: 2 });
  expect(
    argumentsOf(`subscription A($from: Int) ${GET} { ticks(from: $from) @body }`, { query: { from: '4' } }),
  ).toEqual({ from: 4 });
});

it('the field is the first one, not a fragment before it', () => {
  const text = `query A($from: Int) ${GET} { ...F plan(from: $from) @body }
    fragment F on Query { __typename }`;
  expect(argumentsOf(text, { query: { from: '1' } })).toEqual({ from: 1 });
});

it('a field that compares nothing, or that has no arguments, is not asked', () => {
  expect(compared(`query A($from: Int) ${GET} { alone(from: $from) @body }`, { query: { from: '1' } })).toEqual([]);
  expect(compared(`query A($from: Int) ${GET} { free(from: $from) @body }`, { query: { from: 'x' } })).toHaveLength(1);
  expect(compared(`query A ${GET} { kind: __typename plan @body }`)).toEqual([]);
  expect(asked).toEqual([]);
});

it('an argument that nothing feeds has its default', () => {
  expect(argumentsOf(`query A ${GET} { listEvents @body }`)).toEqual({
    from: undefined,
    until: 9,
    order: 'rising',
    on: undefined,
    ids: undefined,
  });
});

it('an argument that is written in the document is that value', () => {
  expect(argumentsOf(`query A ${GET} { listEvents(from: 5, until: 6, order: falling, ids: ["a"]) @body }`)).toEqual({
    from: 5,
    until: 6,
    order: 'falling',
    on: undefined,
    ids: ['a'],
  });
});

it('a variable that was not sent has its own default, else that of its argument', () => {
  const text = listing('$from: Int = 3, $until: Int = 7, $order: Order', 'from: $from, until: $until, order: $order');
  expect(argumentsOf(text)).toMatchObject({ from: 3, until: 7, order: 'rising' });
  expect(argumentsOf(text, { query: { until: '8', order: 'falling' } })).toMatchObject({
    from: 3,
    until: 8,
    order: 'falling',
  });
  expect(argumentsOf(listing('$until: Int', 'until: $until'))).toMatchObject({ until: 9 });
});

it('values are as a resolver would get them; null is null', () => {
  const text = listing(
    '$from: Int, $until: Int, $on: Day, $ids: [ID!]',
    'from: $from, until: $until, on: $on, ids: $ids',
  );
  expect(argumentsOf(text, { query: { from: '1', on: 'today', ids: ['a', 'b'] } })).toEqual({
    from: 1,
    until: 9,
    order: 'rising',
    on: { day: 'today' },
    ids: ['a', 'b'],
  });
});

it('what cannot be read is not compared', () => {
  const text = listing('$from: Int, $on: Day, $days: [Day!]', 'from: $from, on: $on, days: $days');
  const failures = compared(text, { query: { from: '2147483648', on: 'never', days: ['today', 'never'] } });
  expect(failures.map(({ type }) => type)).toEqual(['less_than_equal', 'datetime_parsing', 'datetime_parsing']);
  expect(asked.at(-1)?.args).toMatchObject({ from: undefined, on: undefined, days: undefined });
});

const MOVE = `mutation Move($least: Int, $span: Span @body) @rest(method: POST, path: "/v1/x") {
  move(least: $least, span: $span) @body }`;

it('an object is as it was read from the body', () => {
  expect(argumentsOf(MOVE, { body: { until: 3, x: [1, 'x'] } })).toEqual({
    least: undefined,
    span: { until: 3, x: [1, undefined] },
    spare: { until: 4 },
  });
  const spare = `mutation Move($spare: Span @body) @rest(method: POST, path: "/v1/x") { move(spare: $spare) @body }`;
  expect(argumentsOf(spare)).toMatchObject({ spare: { until: 4 } });
  expect(argumentsOf(spare, { body: { until: 5 } })).toMatchObject({ spare: { until: 5 } });
});

it('what contradicts is reported where the client sent it, in the order of places', () => {
  wrong = [
    { path: ['span', 'until'], type: 'before', msg: 'is before the least', ctx: { least: 5 } },
    { path: ['least'], type: 'after', msg: 'is after the span', input: 'shown' },
  ];
  expect(compared(MOVE, { query: { least: '5' }, body: { until: 3, x1: 'y' } })).toEqual([
    { type: 'after', loc: ['query', 'least'], msg: 'is after the span', input: 'shown' },
    {
      type: 'int_parsing',
      loc: ['body', 'x1'],
      msg: 'Input should be a valid integer, unable to parse string as an integer',
      input: 'y',
    },
    { type: 'before', loc: ['body', 'until'], msg: 'is before the least', input: 3, ctx: { least: 5 } },
  ]);
});

it('also below a field with another name in REST', () => {
  wrong = [{ path: ['from'], type: 't', msg: 'm' }];
  expect(compared(listing('$begin: Int', 'from: $begin'), { query: { begin: '5' } })).toEqual([
    { type: 't', loc: ['query', 'begin'], msg: 'm', input: '5' },
  ]);
  expect(compared(`query A($begin: Int) ${GET} { plan(from: $begin) @body }`, { query: { begin: '5' } })).toEqual([
    { type: 't', loc: ['query', 'begin'], msg: 'm', input: '5' },
  ]);
});

it('a place has one failure, its own', () => {
  wrong = [
    { path: ['span', 'x1'], type: 't', msg: 'm' },
    { path: ['span', 'x', 1], type: 't', msg: 'm' },
  ];
  const failures = compared(MOVE, { body: { x1: 'wrong', x: [1, 2] } });
  expect(failures.map(({ type, loc }) => [type, ...loc])).toEqual([
    ['int_parsing', 'body', 'x1'],
    ['t', 'body', 'x', 1],
  ]);
});
