import { buildSchema, execute, GraphQLError, parse } from 'graphql';
import { expect, test } from 'vitest';
import { withoutValue } from '../../../src/engine/path/coercion-errors.ts';
import { startTestApp } from '../../support/app.ts';

const schema = buildSchema(`
  input Inner { code: Int!, name: String }
  input Input { password: String!, inner: Inner, list: [Inner!], role: Role, flag: Boolean, id: ID, ratio: Float }
  enum Role { ADMIN }
  type Query { field(input: Input!): String }`);
const document = parse('query ($input: Input!) { field(input: $input) }');

async function messagesFor(input: unknown): Promise<string[]> {
  const { errors = [] } = await execute({ schema, document, variableValues: { input } });
  return errors.map((error) => withoutValue(error).message);
}

const password = 'hunter2; "x" at "hunter2"; hunter2';

test.each<[string, unknown, string[]]>([
  [
    'a missing field',
    { inner: { code: 1 }, note: password },
    [
      'Variable "$input" got an invalid value; Field "password" of required type "String!" was not provided.',
      'Variable "$input" got an invalid value; Field "note" is not defined by type "Input".',
    ],
  ],
  [
    'a field of another type',
    { password, inner: { code: password } },
    ['Variable "$input" got an invalid value at "input.inner.code"; Int cannot represent non-integer value'],
  ],
  [
    'an object for a text',
    { password: { password } },
    ['Variable "$input" got an invalid value at "input.password"; String cannot represent a non string value'],
  ],
  [
    'what no enumeration has',
    { password, role: password },
    ['Variable "$input" got an invalid value at "input.role"; it is not a value of the enum "Role".'],
  ],
  [
    'something deep in a list',
    { password, list: [{ code: 1 }, { code: 2, name: [password] }] },
    ['Variable "$input" got an invalid value at "input.list[1].name"; String cannot represent a non string value'],
  ],
  [
    'a text for an object',
    password,
    ['Variable "$input" got an invalid value; Expected type "Input" to be an object.'],
  ],
  [
    'null',
    { password: null },
    [
      'Variable "$input" got an invalid value at "input.password"; Expected non-nullable type "String!" not to be ' +
        'null.',
    ],
  ],
  [
    'other scalars',
    { password, flag: password, id: [password], ratio: password },
    [
      'Variable "$input" got an invalid value at "input.flag"; Boolean cannot represent a non boolean value',
      'Variable "$input" got an invalid value at "input.id"; ID cannot represent value',
      'Variable "$input" got an invalid value at "input.ratio"; Float cannot represent non numeric value',
    ],
  ],
])('%s: says where and why, and repeats nothing', async (_title, input, expected) => {
  const messages = await messagesFor(input);
  expect(messages).toEqual(expected);
  expect(messages.join()).not.toContain('hunter2');
});

test('other errors stay as they are', () => {
  const error = new GraphQLError('Cannot query field "x" on type "Query".');
  expect(withoutValue(error)).toBe(error);
});

test.each([
  'mutation { createSecret(orgId: "o", input: [{ name: "x", secretType: "t", value: { k: "hunter2" } }, 5]) { id } }',
  'mutation { createSecret(orgId: { k: "hunter2" }, input: { name: "x", secretType: "t", value: { k: "v" } }) { id } }',
  'mutation { createSecret(orgId: "o", input: "hunter2") { id } }',
  '{ users(workspaceId: "w", first: "hunter2") { totalCount } }',
  '{ me { id } "hunter2" }',
  '{ me(x: """hunter2""" """hunter2""") { id } }',
])('a document with a value in the wrong place is refused without it: %s', async (query) => {
  const app = await startTestApp();
  try {
    const answer = await app.server.inject({ method: 'POST', url: '/graphql', payload: { query } });
    expect(answer.json<{ errors: { message: string }[] }>().errors[0]!.message).toMatch(
      /^(Expected value of type|\w+ cannot represent|Syntax Error: )/,
    );
    expect(answer.body).not.toContain('hunter2');
  } finally {
    await app.close();
  }
});
