import {
  buildSchema,
  type GraphQLInputObjectType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLString,
} from 'graphql';
import { describe, expect, it } from 'vitest';
import { inputReader, type RequestParts } from '../../rest/input.ts';
import type { BodyParameter, Parameter } from '../../rest/parameters.ts';

const schema = buildSchema(`
  type Query { a: Int }
  input Outer { userName: String! pinCode: String inner: [Inner!] }
  input Inner { secretWord: String, open: String }
`);
const outer = schema.getType('Outer') as GraphQLInputObjectType;
const inner = schema.getType('Inner') as GraphQLInputObjectType;
for (const field of [outer.getFields().pinCode, inner.getFields().secretWord])
  Object.assign(field ?? {}, { extensions: { constraints: { sensitive: true } } });

const parameter = (name: string, more: Partial<Parameter> = {}): Parameter => ({
  name,
  in: 'query',
  wireName: name,
  type: GraphQLString,
  isRequired: false,
  isCommaList: false,
  defaultValue: undefined,
  constraints: {},
  description: '',
  ...more,
});
const body = (more: Partial<BodyParameter> = {}): BodyParameter => ({
  name: 'input',
  type: outer,
  isRequired: true,
  description: '',
  fileField: null,
  takesForm: false,
  ...more,
});
function read(parameters: Parameter[], request: Partial<RequestParts>, given: BodyParameter | null = null) {
  const reader = inputReader({ parameters, body: given });
  const { variables, issues } = reader.read({ params: {}, query: {}, headers: {}, body: undefined, ...request });
  return { variables, issues: issues.items };
}
const missing = (...loc: string[]) => ({ type: 'missing', loc, msg: 'Field required', input: null });

describe('the variables of a request', () => {
  it('come from the path, the query string, headers and the body', () => {
    const parameters = [
      parameter('id', { in: 'path', wireName: 'item_id' }),
      parameter('limit', { type: GraphQLInt }),
      parameter('trace', { in: 'header', wireName: 'x-trace' }),
    ];
    const request = {
      params: { item_id: 'i', limit: '1', 'x-trace': '1' },
      query: { limit: '5', item_id: 'no', 'x-trace': '2' },
      headers: { 'x-trace': 't', item_id: 'no', limit: '3' },
      body: { user_name: 'u' },
    };
    expect(read(parameters, request, body())).toEqual({
      variables: { id: 'i', limit: 5, trace: 't', input: { userName: 'u' } },
      issues: [],
    });
  });

  it('are not there when they were not sent', () => {
    const optional = [parameter('a'), parameter('b', { in: 'header' })];
    expect(read(optional, {}, body({ isRequired: false }))).toEqual({ variables: {}, issues: [] });
    expect(read(optional, { query: undefined })).toEqual({ variables: {}, issues: [] });
  });

  it('that must be there and are not are all reported', () => {
    const all = [
      parameter('a', { in: 'path', isRequired: true }),
      parameter('b', { isRequired: true }),
      parameter('c', { in: 'header', wireName: 'x-c', isRequired: true }),
    ];
    const issues = [missing('path', 'a'), missing('query', 'b'), missing('header', 'x-c'), missing('body')];
    expect(read(all, {}, body())).toEqual({ variables: {}, issues });
    expect(read(all, { body: null }, body())).toEqual({ variables: {}, issues });
  });

  it('may be a null body where none is required', () => {
    expect(read([], { body: null }, body({ isRequired: false }))).toEqual({ variables: { input: null }, issues: [] });
  });
});

describe('a parameter that was sent more than once', () => {
  const text = parameter('a');
  const list = parameter('a', { type: new GraphQLNonNull(new GraphQLList(GraphQLString)) });
  const commas = parameter('a', { type: new GraphQLList(GraphQLString), isCommaList: true });
  const readOf = (of: Parameter, a: string | string[]) => read([of], { query: { a } }).variables.a;

  it('has its last value, or is a list where one is expected', () => {
    expect(readOf(text, ['x', 'y', 'z'])).toBe('z');
    expect(readOf(list, ['x', 'y'])).toEqual(['x', 'y']);
    expect(readOf(list, 'x,y')).toEqual(['x,y']);
  });

  it('between commas is a list without empty items', () => {
    expect(readOf(commas, 'x, y ,z')).toEqual(['x', 'y', 'z']);
    expect(readOf(commas, ' , x,,')).toEqual(['x']);
    expect(readOf(commas, '')).toEqual([]);
    expect(readOf(commas, ['x', 'y,z'])).toEqual(['y', 'z']);
    expect(readOf(commas, [])).toEqual([]);
  });
});

describe('what is shown later', () => {
  const secret = parameter('a', { wireName: 'x-secret', constraints: { sensitive: true } });
  const { echo } = inputReader({ parameters: [secret, parameter('b')], body: body() });

  it('hides the parameters and fields that the schema marks, however deep', () => {
    expect(echo('s', ['header', 'x-secret'])).toBe('[redacted]');
    expect(echo('s', ['body', 'inner', 0, 'secret_word'])).toBe('[redacted]');
    expect(echo({ user_name: 'u', pin_code: 's', inner: [{ secret_word: 's', open: 'o' }] }, ['body'])).toEqual({
      user_name: 'u',
      pin_code: '[redacted]',
      inner: [{ secret_word: '[redacted]', open: 'o' }],
    });
    expect(echo('s', ['query', 'b'])).toBe('s');
  });

  it('hides nothing more of an operation without a body', () => {
    const plain = inputReader({ parameters: [secret, parameter('b')], body: null });
    expect(plain.echo({ pin_code: 's', 'x-secret': 's', b: 1 }, ['query'])).toEqual({
      pin_code: 's',
      'x-secret': '[redacted]',
      b: 1,
    });
  });

  it('hides the same in the issues of the reading', () => {
    const word = parameter('b', { type: GraphQLInt, wireName: 'n' });
    expect(
      read([{ ...secret, in: 'header', type: GraphQLInt }, word], {
        headers: { 'x-secret': 's' },
        query: { n: 'x' },
      }).issues.map(({ input }) => input),
    ).toEqual(['[redacted]', 'x']);
  });
});
