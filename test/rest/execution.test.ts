import { buildSchema, GraphQLError, OperationTypeNode, parse } from 'graphql';
import { expect, it } from 'vitest';
import { declaredFailures, executionOf, isPublic, rootFieldsOf } from '../../rest/execution.ts';
import { Issues } from '../../rest/issues.ts';
import { LiveStream } from '../../src/engine/live/live-stream.ts';

const schema = buildSchema(`
  type Query { health: String status: String secret: String }
  type Mutation { add(by: Int!): Int }
  type Subscription { ticks(to: Int!): Int }
`);
const fields = { ...schema.getQueryType()!.getFields(), ...schema.getMutationType()!.getFields() };
Object.assign(fields.health!, {
  extensions: { access: 'public', mayFail: ['UPSTREAM_ERROR'] },
  resolve: (_root: unknown, _args: unknown, { who }: { who: string }) => `well, ${who}`,
});
Object.assign(fields.status!, {
  extensions: { access: 'public', mayFail: ['UPSTREAM_TIMEOUT', 'UPSTREAM_ERROR'] },
});
Object.assign(fields.secret!, { extensions: { access: 'signed-in' } });
let sum = 0;
Object.assign(fields.add!, { resolve: (_root: unknown, { by }: { by: number }) => (sum += by) });
Object.assign(schema.getSubscriptionType()!.getFields().ticks!, {
  async *subscribe(_root: unknown, { to }: { to: number }) {
    if (to < 0) throw new GraphQLError('no way back');
    for (let at = 1; at <= to; at++) yield { ticks: at };
  },
});

const of = (text: string) => executionOf(schema, parse(text));
const context = { who: 'Ann' };
const input = (variables: Record<string, unknown> = {}) => ({ variables, issues: new Issues((value) => value) });

it('a query is executed in the context of the request', async () => {
  const { run } = of('query A { health again: health }');
  expect(await run(context, input())).toEqual({ data: { health: 'well, Ann', again: 'well, Ann' } });
});

it('the changes of a mutation follow each other, with the variables of the request', async () => {
  sum = 0;
  const { run } = of('mutation A($by: Int!) { add(by: $by) more: add(by: 10) }');
  expect(await run(context, input({ by: 5 }))).toEqual({ data: { add: 5, more: 15 } });
  const { errors } = await run(context, input({ by: 'x' }));
  expect(errors?.map(({ message }) => message)).toEqual([expect.stringContaining('Variable "$by" got invalid value')]);
});

it('a subscription is a stream of results, or the result that says why there is none', async () => {
  const { subscribe } = of('subscription A($to: Int!) { ticks(to: $to) }');
  const stream = await subscribe(context, input({ to: 2 }));
  expect(stream).toBeInstanceOf(LiveStream);
  const results: unknown[] = [];
  for await (const result of stream as LiveStream) results.push(result);
  expect(results).toEqual([{ data: { ticks: 1 } }, { data: { ticks: 2 } }]);
  expect(await subscribe(context, input())).toMatchObject({
    errors: [{ message: expect.stringContaining('$to') as string }],
  });
});

it('errors of an event are handed on as they are', async () => {
  const { subscribe } = of('subscription A { ticks(to: 1) }');
  const field = schema.getSubscriptionType()!.getFields().ticks!;
  const cause = new Error('a bug');
  field.resolve = () => {
    throw cause;
  };
  const { value } = await ((await subscribe(context, input())) as LiveStream).next();
  delete field.resolve;
  expect(value?.errors?.[0]?.originalError).toBe(cause);
});

it('the root fields are all that a document selects, also in fragments', () => {
  const text = `
    fragment F on Query { status ...G }
    query A { health ... on Query { again: health ... { secret } } ...F ...Nowhere nothing }
    fragment G on Query { secret }
  `;
  const names = (document: string, type = OperationTypeNode.QUERY) =>
    rootFieldsOf(schema, parse(document), type).map((field) => field?.name);
  expect(names(text)).toEqual(['health', 'health', 'secret', 'status', 'secret', undefined]);
  expect(names('{ health }')).toEqual(['health']);
  expect(names('mutation A { add(by: 1) }', OperationTypeNode.MUTATION)).toEqual(['add']);
  expect(
    rootFieldsOf(buildSchema('type Query { a: Int }'), parse('mutation A { a }'), OperationTypeNode.MUTATION),
  ).toEqual([undefined]);
});

it('strangers may use an operation if they may use each of its root fields', () => {
  const { health, status, secret } = fields;
  expect([isPublic([health, status]), isPublic([health, secret]), isPublic([secret]), isPublic([undefined])]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

it('what root fields declare that may fail is told once', () => {
  const { health, status, secret } = fields;
  expect(declaredFailures([health, status, undefined, secret])).toEqual(['UPSTREAM_ERROR', 'UPSTREAM_TIMEOUT']);
  expect(declaredFailures([secret])).toEqual([]);
});
