import { afterAll, describe, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import { buildOpenApi, type OpenApiDocument } from '../../rest/openapi.ts';
import { failureResponse } from '../../rest/statuses.ts';
import { folderOf, removeFolders, toySchema } from './toy.ts';

afterAll(removeFolders);

const info = { title: 'Shop', version: '1', description: 'A toy.' };

interface Given {
  examples?: Record<string, unknown>;
  publicUrl?: string;
  groups?: { file: string; name: string; description?: string }[];
}

/** The OpenAPI document of a shop whose operations are these. */
function documentOf(text: string, { examples = {}, publicUrl, groups = [{ file: 'shop', name: 'Shop' }] }: Given = {}) {
  const schema = toySchema();
  const mutations = schema.getMutationType()!.getFields();
  Object.assign(mutations.removeItem!.extensions, { versionArgument: 'expectedVersion' });
  Object.assign(schema.getType('UpdateItemInput')!, { description: 'What changes.' });
  return buildOpenApi(compileOperations(schema, folderOf(text)), { groups, examples }, { info, publicUrl });
}
const only = (document: OpenApiDocument) => Object.values(Object.values(document.paths)[0]!)[0]!;
const entryOf = (text: string, given?: Given) => only(documentOf(text, given));
const parameters = [{ $ref: '#/components/parameters/Authorization' }, { $ref: '#/components/parameters/TraceId' }];
const header = (name: string) => ({ $ref: `#/components/headers/${name}` });
/** Headers that every answer has. */
const headers = {
  'x-trace-id': header('TraceId'),
  'x-ratelimit-limit': header('RateLimitLimit'),
  'x-ratelimit-remaining': header('RateLimitRemaining'),
  'x-ratelimit-reset': header('RateLimitReset'),
};
const failures = (...statuses: number[]) =>
  Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/${failureResponse(status).name}` }]),
  );
const S0 = 'errors: S0';
const anywhere = failures(400, 429, 500, 503);
const content = (schema: object) => ({ 'application/json': { schema } });

describe('the entry of an operation', () => {
  it('of strangers says that nobody needs to sign in', () => {
    expect(entryOf(`query Health @rest(method: GET, path: "/v1/health", ${S0}) { health @body }`)).toEqual({
      operationId: 'Health',
      tags: ['Shop'],
      'x-error-set': 'S0',
      security: [],
      parameters,
      responses: { 200: { description: 'Success.', headers, content: content({ type: 'string' }) }, ...anywhere },
    });
  });

  it('has the first sentence or line of its description as summary, without its full stop', () => {
    const summaryOf = (comment: string) => {
      const { summary, description } = entryOf(
        `${comment}\nquery A @rest(method: GET, path: "/v1/x") { shop(id: "1") @body { id } }`,
      );
      return [summary, description];
    };
    expect(summaryOf('# Shows it. Or not.')).toEqual(['Shows it', 'Shows it. Or not.']);
    expect(summaryOf('# Shows it\n# at once.')).toEqual(['Shows it', 'Shows it\nat once.']);
    expect(summaryOf('# Version 1.5 of it')).toEqual(['Version 1.5 of it', 'Version 1.5 of it']);
    expect(summaryOf('')).toEqual(['A shop', 'A shop.']);
  });

  it('has the body as JSON, with its description and an example', () => {
    const text = `mutation Update($body: UpdateItemInput! @body) @rest(method: PUT, path: "/v1/x", ${S0}) {
      updateItem(id: "1", input: $body) @body }`;
    const schema = { $ref: '#/components/schemas/UpdateItemInput' };
    expect(entryOf(text).requestBody).toEqual({
      required: true,
      description: 'What changes.',
      content: content(schema),
    });
    expect(entryOf(text, { examples: { Update: { a: 1 }, Other: {} } }).requestBody).toMatchObject({
      content: { 'application/json': { schema, example: { a: 1 } } },
    });
  });

  it('has the body as JSON or a form, or as a form with a file', () => {
    const either = `mutation Update($body: UpdateItemInput! = {} @body @form) @rest(method: PUT, path: "/v1/x") {
      updateItem(id: "1", input: $body) @body }`;
    const schema = { $ref: '#/components/schemas/UpdateItemInput' };
    expect(entryOf(either, { examples: { Update: {} } }).requestBody).toEqual({
      required: false,
      description: 'What changes.',
      content: {
        'application/json': { schema, example: {} },
        'application/x-www-form-urlencoded': { schema },
      },
    });
    const file = `mutation Add($body: PictureInput! @upload(file: "picture")) @rest(method: POST, path: "/v1/x") {
      addPicture(id: "1", input: $body) @body }`;
    const form = { schema: { $ref: '#/components/schemas/PictureInputForm' } };
    expect(entryOf(file).requestBody).toEqual({ required: true, content: { 'multipart/form-data': form } });
    expect(entryOf(file, { examples: { Add: { count: 1 } } }).requestBody).toEqual({
      required: true,
      content: { 'multipart/form-data': { ...form, example: { count: 1 } } },
    });
  });

  it('takes If-Match where a version may be given, and no header that it reads itself', () => {
    const remove = entryOf('mutation A @rest(method: DELETE, path: "/v1/x") { removeItem(id: "1") @body }');
    expect(remove.parameters).toEqual([...parameters, { $ref: '#/components/parameters/IfMatch' }]);
    const own = entryOf(
      'query A($a: String @header(name: "Authorization")) @rest(method: GET, path: "/v1/x") { echo(text: $a) @body }',
    );
    expect(own.parameters).toEqual([
      {
        name: 'authorization',
        in: 'header',
        required: false,
        schema: { type: 'string', pattern: '^[^\\x00]*$' },
      },
      parameters[1],
    ]);
  });

  it('shows that an answer has no body, null, or a version', () => {
    const responseOf = (field: string, rest = '') =>
      entryOf(`mutation A @rest(method: DELETE, path: "/v1/x"${rest}) { removeItem(id: "1") ${field} }`).responses;
    expect(responseOf('@body', ', status: 204')).toMatchObject({ 204: { description: 'Success without a body.' } });
    expect(responseOf('@body @nothing')).toMatchObject({
      200: { description: 'Success. The body is `null`.', content: content({ type: 'null' }) },
    });
    expect(responseOf('@body')).toMatchObject({
      200: { description: 'Success.', content: content({ type: ['boolean', 'null'] }) },
    });
    const item = 'query A @rest(method: GET, path: "/v1/x") { item(id: "1") @body';
    expect(entryOf(`${item} { id name @etag } }`).responses).toMatchObject({
      200: { headers: { ETag: { $ref: '#/components/headers/ETag' } } },
    });
    expect((entryOf(`${item} { id } }`).responses as Record<string, object>)[200]).toHaveProperty('headers', headers);
  });

  it('shows a redirect, and the body without its address', () => {
    const { responses } = entryOf(
      'query A @rest(method: GET, path: "/v1/x") { item(id: "1") @body { id name @redirect } }',
    );
    expect(responses).toMatchObject({
      303: {
        description: 'The browser goes on to this address.',
        headers: { Location: { required: true, schema: { type: 'string', format: 'uri' } } },
      },
    });
    expect((responses as Record<string, object>)[200]).toEqual({
      description: 'Success.',
      headers,
      content: content({ type: ['object', 'null'], properties: { id: { type: 'string' } }, required: ['id'] }),
    });
    expect(entryOf('query A @rest(method: GET, path: "/v1/x") { health @body }').responses).not.toHaveProperty('303');
  });

  it('shows a stream by the data of its events', () => {
    const { responses } = entryOf(
      'subscription A($a: String @lastEventId) @rest(method: GET, path: "/v1/x") { ' +
        'events(itemId: "1", after: $a) @body { id cursor @eventId } }',
    );
    expect((responses as Record<string, object>)[200]).toEqual({
      description: 'A stream of server-sent events. The schema describes `data`.',
      headers,
      content: {
        'text/event-stream': {
          schema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
        },
      },
    });
  });
});

describe('the document', () => {
  const two = `
    query Get @rest(method: GET, path: "/v1/x", ${S0}) { health @body }
    mutation Put @rest(method: PUT, path: "/v1/x", ${S0}) { removeItem(id: "1") @body }
  `;

  it('has all methods of a path together', () => {
    const { paths } = documentOf(two);
    expect(Object.entries(paths).map(([path, methods]) => [path, Object.keys(methods)])).toEqual([
      ['/v1/x', ['get', 'put']],
    ]);
  });

  it('says where the service is; without an address, where the document is', () => {
    expect(documentOf(two).servers).toEqual([{ url: '/' }]);
    expect(documentOf(two, { publicUrl: 'https://shop.test' }).servers).toEqual([{ url: 'https://shop.test' }]);
  });

  it('has its groups as tags, and what it is', () => {
    const groups = [
      { file: 'shop', name: 'Shop', description: 'All.' },
      { file: 'other', name: 'Other' },
    ];
    const document = documentOf(two, { groups });
    expect(document.tags).toEqual([{ name: 'Shop', description: 'All.' }, { name: 'Other' }]);
    expect([document.openapi, document.info, document.security]).toEqual(['3.1.0', info, [{ bearer: [] }]]);
    expect(only(document).tags).toEqual(['Shop']);
  });

  it('has what operations share: how to sign in, headers, and the failures in ascending order', () => {
    const { components } = documentOf(two);
    expect(components.securitySchemes).toEqual({ bearer: { type: 'http', scheme: 'bearer' } });
    expect(components.parameters).toMatchObject({
      Authorization: {
        name: 'authorization',
        in: 'header',
        required: false,
        schema: { type: ['string', 'null'] },
      },
      TraceId: { name: 'x-trace-id', in: 'header', required: false, schema: { type: ['string', 'null'] } },
      IfMatch: { name: 'if-match', in: 'header', required: false, schema: { type: 'string' } },
    });
    expect(components.headers).toMatchObject({ ETag: { schema: { type: 'string' } } });
    const statuses = [400, 401, 403, 409, 412, 415, 429, 500, 503].map((status) => failureResponse(status));
    expect(Object.keys(components.responses as object)).toEqual(statuses.map(({ name }) => name));
    for (const { name, description, examples } of statuses) {
      const shown = Object.entries(examples).map(([code, value]) => [code, { value }] as const);
      expect((components.responses as Record<string, unknown>)[name]).toEqual({
        description,
        headers: /^(?:RateLimited|ServiceUnavailable)$/.test(name)
          ? { ...headers, 'retry-after': header('RetryAfter') }
          : headers,
        content: {
          'application/json': {
            schema: { $ref: '#/components/schemas/Error' },
            examples: Object.fromEntries(shown),
          },
        },
      });
    }
  });

  it('takes as If-Match what answers have as ETag, one or several, weak or not, or any', () => {
    const { IfMatch } = documentOf(two).components.parameters as Record<string, { schema: { pattern: string } }>;
    const pattern = new RegExp(IfMatch!.schema.pattern);
    for (const good of ['*', '"3"', 'W/"3"', '"1", "2"', '"1",W/"2",  "3"', '""']) expect(good).toMatch(pattern);
    for (const bad of ['', '3', '"3', '* ', '"1" "2"', '"1",', ',"1"', '"a b"', 'w/"3"', '"1"*', '"1";"2"'])
      expect(bad).not.toMatch(pattern);
  });

  it('describes both bodies of errors', () => {
    const { Error: error, ValidationError } = documentOf(two).components.schemas;
    expect(error).toMatchObject({
      type: 'object',
      properties: {
        error: { type: 'string' },
        message: { type: 'string' },
        details: { type: 'object', additionalProperties: true },
        timestamp: { type: 'string' },
        status_code: { type: 'integer' },
      },
      required: ['error', 'message', 'details', 'timestamp', 'status_code'],
    });
    expect(ValidationError).toMatchObject({
      type: 'object',
      properties: {
        detail: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              type: { type: 'string' },
              loc: { type: 'array', items: { type: ['string', 'integer'] } },
              msg: { type: 'string' },
              input: {},
              ctx: { type: 'object', additionalProperties: true },
            },
            required: ['type', 'loc', 'msg', 'input'],
          },
        },
      },
      required: ['detail'],
    });
    expect(documentOf(two).components.schemas.Error).not.toBe(error);
  });
});
