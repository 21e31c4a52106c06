import { buildSchema, type ExecutionResult, execute, GraphQLError, type GraphQLScalarType } from 'graphql';
import { afterAll, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import { operationOf } from '../../rest/documents.ts';
import { ValidationFailure } from '../../rest/errors.ts';
import { failureOf } from '../../rest/failure.ts';
import type { RequestParts } from '../../rest/input.ts';
import { echoOf } from '../../rest/issues.ts';
import { Locator } from '../../rest/locate.ts';
import { ApiError, InputError } from '../../src/kernel/errors.ts';
import { folderOf, removeFolders } from './toy.ts';

afterAll(removeFolders);

const schema = buildSchema(`
  scalar Strict
  input Part { tooNarrow: Strict }
  type Query { first(limit: Int): String second(after: String): String third(strict: Strict, part: Part): String }
`);
let isStrict = false;
Object.assign(schema.getType('Strict')!, {
  extensions: { jsonType: 'any' },
  parseValue(value: unknown) {
    if (isStrict) throw new Error('no longer');
    return value;
  },
} satisfies Partial<GraphQLScalarType>);

const [operation] = compileOperations(
  schema,
  folderOf(`
    query Several($limit: Int, $after: String, $strict: Strict, $token: String @header(name: "X-Token"))
      @rest(method: GET, path: "/v1/x") {
      first(limit: $limit) @body
      second(after: $after)
      other: second(after: $token)
      third(strict: $strict)
    }
  `),
);
const { document, parameters, body } = operation!;
const locator = new Locator(schema, document, operationOf(document), { parameters, body });
const request: RequestParts = {
  params: {},
  query: { limit: '5', after: 'a', strict: 'x' },
  headers: { 'x-token': 'geheim' },
  body: undefined,
};

/** What the caller is told when resolvers throw. */
async function failing(thrown: Record<string, unknown>, variables: Record<string, unknown> = {}) {
  const { errors = [] } = (await execute({
    schema,
    document,
    variableValues: variables,
    fieldResolver: (_source, _args, _context, { path }) => {
      if (path.key in thrown) throw thrown[path.key];
      return 'fine';
    },
  })) as ExecutionResult;
  return failureOf(errors as readonly GraphQLError[], locator, echoOf(['x-token']), request);
}
const invalid = (...paths: string[]) =>
  new InputError(paths.map((path) => ({ path: [path], type: 't', msg: `of ${path}`, ctx: { a: path } })));

it('the first failure in the order of the document is the one that counts', async () => {
  const late = new ApiError('RESOURCE_CONFLICT', { reason: 'late' });
  const soon = new ApiError('FORBIDDEN');
  expect(await failing({ third: late, second: soon })).toBe(soon);
  expect(await failing({ second: soon, first: late, third: invalid('strict') })).toBe(late);
});

it('it is what was thrown, without what it was wrapped in', async () => {
  const cause = new Error('a bug');
  expect(await failing({ first: cause })).toBe(cause);
  const wrapped = Object.assign(new Error('outer'), {
    originalError: Object.assign(new Error('x'), { originalError: cause }),
  });
  expect(await failing({ first: wrapped })).toBe(cause);
});

it('if the first concerns the input, all that do are told at once, in the order of the document', async () => {
  const failure = await failing({
    third: invalid('strict'),
    second: new ApiError('FORBIDDEN'),
    other: invalid('after'),
    first: invalid('limit'),
  });
  expect(failure).toBeInstanceOf(ValidationFailure);
  expect((failure as ValidationFailure).detail).toEqual([
    { type: 't', loc: ['query', 'limit'], msg: 'of limit', input: '5', ctx: { a: 'limit' } },
    { type: 't', loc: ['header', 'x-token'], msg: 'of after', input: '[redacted]', ctx: { a: 'after' } },
    { type: 't', loc: ['query', 'strict'], msg: 'of strict', input: 'x', ctx: { a: 'strict' } },
  ]);
});

it('a value that was read, and that graphql-js then refuses, is invalid as well', async () => {
  isStrict = true;
  const failure = await failing({}, { strict: 'x' });
  isStrict = false;
  expect((failure as ValidationFailure).detail).toEqual([
    {
      type: 'value_error',
      loc: ['query', 'strict'],
      msg: 'Value error, invalid value',
      input: 'x',
      ctx: { error: 'invalid value' },
    },
  ]);
});

it('an error without any place is told as it is', () => {
  const error = new GraphQLError('Too many errors processing variables');
  expect(failureOf([error], locator, echoOf(), request)).toBe(error);
});

it('there is no failure without an error', () => {
  expect(() => failureOf([], locator, echoOf(), request)).toThrow('An execution failed without an error.');
});
