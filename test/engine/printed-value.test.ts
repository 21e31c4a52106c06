import fc from 'fast-check';
import { execute, GraphQLObjectType, GraphQLScalarType, GraphQLSchema, parse } from 'graphql';
import { expect, test } from 'vitest';
import { operationOf } from '../../rest/documents.ts';
import { Plan } from '../../src/engine/execution/plan.ts';

const Broken = new GraphQLScalarType({ name: 'Broken', serialize: () => undefined });
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: { value: { type: Broken, resolve: (_root, _args, value: unknown) => value } },
  }),
});
const document = parse('{ value }');
const plan = new Plan(schema, document, operationOf(document));

/** The messages about a value for which its scalar has no text, of graphql-js and of a plan. */
async function messagesOf(value: unknown): Promise<[string | undefined, string | undefined]> {
  const theirs = await execute({ schema, document, contextValue: value });
  const ours = await plan.run(value, {});
  return [theirs.errors?.[0]?.message, ours.errors?.[0]?.message];
}

class Named {
  readonly inner = { deeper: { deepest: new Map([[1, 2]]), array: [[1]], made: new Date(0) } };
}
class Silent {
  toJSON(): unknown {
    return this;
  }
}
const circular: Record<string, unknown> = { name: 'one' };
circular.self = circular;
circular.others = [circular];

test.each([
  ['a class', { a: { b: new Named() } }],
  ['a circle', circular],
  ['a date', new Date(0)],
  ['what gives itself as JSON', new Silent()],
  ['what gives an object as JSON', { toJSON: () => ({ a: ['b'] }) }],
  ['ten items', Array.from({ length: 10 }, (_, n) => n)],
  ['eleven items', Array.from({ length: 11 }, (_, n) => n)],
  ['twelve items', Array.from({ length: 12 }, (_, n) => n)],
  ['functions', [() => 1, messagesOf, Named]],
  ['deep arrays', [[[[1]], []]]],
  ['deep objects', { a: { b: { c: { d: 1 } } } }],
  ['a deep object without class', { a: { b: Object.assign(Object.create(null) as object, { c: 1 }) } }],
  ['deep instances', { a: { b: new Named(), c: Object.assign(new Map(), { n: 1 }) } }],
  ['a symbol', Symbol('of ours')],
  ['no number', Number.NaN],
])('a message about %s is the one of graphql-js', async (_what, value) => {
  const [theirs, ours] = await messagesOf(value);
  expect(theirs).toContain('to return non-nullable value');
  expect(ours).toBe(theirs);
});

test('a message about any value is the one of graphql-js', async () => {
  const any = fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, maxDepth: 5 });
  await fc.assert(
    fc.asyncProperty(any, async (value) => {
      const [theirs, ours] = await messagesOf(value);
      expect(ours).toBe(theirs);
    }),
    { numRuns: 500 },
  );
});
