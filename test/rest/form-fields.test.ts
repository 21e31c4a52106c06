import Fastify, { type FastifyInstance } from 'fastify';
import { buildSchema, isInputObjectType } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { registerErrorShapes } from '../../rest/errors.ts';
import { acceptFields, bodyOfFields, FORM_TYPE } from '../../rest/form-fields.ts';
import type { CompiledOperation } from '../../rest/operation.ts';

const schema = buildSchema('input Answer { SAMLResponse: String relayState: String } type Query { a(b: Answer): Int }');
const type = schema.getType('Answer');
if (!isInputObjectType(type)) throw new Error('no input');
const operation = {
  body: { name: 'body', type, isRequired: true, description: '', fileField: null, takesForm: true },
} as unknown as CompiledOperation;
const bodyOf = (text: string) => bodyOfFields(operation, new URLSearchParams(text));

let server: FastifyInstance;
beforeAll(async () => {
  server = Fastify();
  registerErrorShapes(server, { onFault: () => undefined });
  acceptFields(server);
  server.post('/', async ({ body }) => ({
    read: body instanceof URLSearchParams ? [...body] : body,
  }));
  await server.ready();
});
afterAll(async () => server.close());

const post = async (payload: string | Buffer, contentType = FORM_TYPE) => {
  const answer = await server.inject({ method: 'POST', url: '/', payload, headers: { 'content-type': contentType } });
  return [answer.statusCode, answer.json()];
};
const refused = [400, expect.objectContaining({ error: 'INVALID_REQUEST', details: { reason: 'form_fields' } })];

it('a form is the body that JSON would be, whatever the spelling of its names', () => {
  const expected = { saml_response: 'a', relay_state: 'b c' };
  expect(bodyOf('SAMLResponse=a&RelayState=b+c')).toEqual(expected);
  expect(bodyOf('saml_response=a&relay_state=b%20c')).toEqual(expected);
  expect(bodyOf('samlresponse=a&relay__State_=b+c')).toEqual(expected);
});

it('fields that the input does not have are dropped, and of equal ones the first one counts', () => {
  expect(bodyOf('other=1&__proto__=2&SAMLResponse=a&saml_response=b&constructor=3')).toEqual({ saml_response: 'a' });
  expect(bodyOf('SAMLResponse=&SAMLResponse=b')).toEqual({ saml_response: '' });
  expect(bodyOf('')).toEqual({});
});

it('another body stays as it is, also that of an operation without one', () => {
  const json = { SAMLResponse: 'a' };
  expect(bodyOfFields(operation, json)).toBe(json);
  expect(bodyOfFields(operation, undefined)).toBeUndefined();
  const form = new URLSearchParams('a=b');
  expect(bodyOfFields({ body: null } as CompiledOperation, form)).toBe(form);
});

it('a route takes a form, and JSON as well', async () => {
  expect(await post('a=1&b=%C3%A9')).toEqual([
    200,
    {
      read: [
        ['a', '1'],
        ['b', 'é'],
      ],
    },
  ]);
  expect(await post('a=é', `${FORM_TYPE}; charset=utf-8`)).toEqual([200, { read: [['a', 'é']] }]);
  expect(await post('{"a":1}', 'application/json')).toEqual([200, { read: { a: 1 } }]);
  expect((await post('a', 'text/plain'))[0]).toBe(415);
});

it('a form has at most 32 fields, and is UTF-8', async () => {
  const fields = (count: number) => Array.from({ length: count }, () => 'a=1').join('&');
  expect((await post(fields(32)))[0]).toBe(200);
  expect(await post(fields(33))).toEqual(refused);
  expect(await post('&'.repeat(32))).toEqual(refused);
  expect(await post(Buffer.from([0x61, 0x3d, 0xff]))).toEqual(refused);
});
