import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { parsedDocument } from '../../../src/tools/imports/document-text.ts';
import type { ReadTask } from '../../../src/tools/imports/import-plan.ts';
import { readDocument } from '../../../src/tools/imports/read-document.ts';
import { pets } from './pets.ts';

type Json = Record<string, unknown>;
const read = (document: unknown, task: Partial<ReadTask> = {}) =>
  readDocument({
    kind: 'openapi',
    credential: null,
    text: typeof document === 'string' ? document : JSON.stringify(document),
    documentUrl: null,
    baseUrl: null,
    keys: [],
    reserved: [],
    search: null,
    most: 200,
    ...task,
  });
const bare = (paths: Json, more: Json = {}) => ({
  openapi: '3.1.0',
  info: { title: 'T', version: '1' },
  servers: [{ url: 'https://api.example.com' }],
  paths,
  ...more,
});
const ok = { responses: { 200: { description: 'OK' } } };
/** The only operation of a document, and the kinds of its gaps. */
const only = (operation: Json, more: Json = {}, path = '/x', task: Partial<ReadTask> = {}) => {
  const { operations, gaps } = read(bare({ [path]: { post: { ...ok, ...operation } } }, more), task);
  return { action: operations[0]?.action, kinds: gaps.map(({ kind }) => kind) };
};
const body = (schema: unknown, type = 'application/json') => ({ requestBody: { content: { [type]: { schema } } } });

describe('a text that is no document', () => {
  test.each([
    ['nothing', '', /no object/],
    ['a word', 'hello', /no object/],
    ['Swagger 2', '{"swagger":"2.0","paths":{}}', /Swagger 2\.0/],
    ['another version', '{"openapi":"4.0.0"}', /3\.0 and 3\.1/],
    ['broken YAML', 'a: [1\nb: {', /see line/],
    ['a bomb of aliases', bomb(), /aliases/],
    ['a list within itself', 'openapi: 3.1.0\npaths: {a: &a [1, *a]}', /contains itself at \/paths\/a\/1/],
    ['an object within itself', 'x: &x\n  y: {z: *x}', /contains itself at \/x\/y\/z/],
    ['YAML of 250 levels', `a: ${'['.repeat(250)}${']'.repeat(250)}`, /too deeply/],
    ['deep JSON', `{"a":${'['.repeat(10_000)}`, /too deeply/],
    ['deep YAML', '['.repeat(100_000), /neither JSON nor YAML/],
    ['large YAML', `a: ${'x'.repeat(1024 * 1024)}`, /YAML may have/],
    ['an unknown alias', 'a: *b', /neither JSON nor YAML|aliases/],
  ])('is refused: %s', (_what, text, message) => {
    expect(() => read(text)).toThrow(message);
  });

  test('gives no type but those of JSON', () => {
    const text = '%YAML 1.1\n---\na: 2026-01-01\nb: !!binary aGk=\nc: {<<: {d: 1}}\n';
    expect(Object.keys(parsedDocument(text))).toEqual(['a', 'b', 'c']);
    expect(parsedDocument(text).a).toBe('2026-01-01');
  });
});

function bomb(): string {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 9; i++)
    lines.push(
      `a${i}: &a${i} [${Array(10)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
    );
  return lines.join('\n');
}

describe('an operation', () => {
  test.each([
    ['dots', '/a/../admin'],
    ['encoded dots', '/a/%2e%2E/admin'],
    ['a query', '/a?b=c'],
    ['a fragment', '/a#b'],
    ['backslashes', '/a\\..\\b'],
    ['a line', '/a\nb'],
    ['an open brace', '/a/{b'],
    ['braces in braces', '/a/{{b}}'],
    ['no slash', 'a'],
  ])('with an unsafe path is not taken: %s', (_what, path) => {
    expect(only({}, {}, path)).toEqual({ action: null, kinds: ['unsafe_address'] });
  });

  test('does not leave the host, also with a path of two slashes', () => {
    expect(only({}, {}, '//evil.example.com/x').action).toMatchObject({
      url_template: 'https://api.example.com//evil.example.com/x',
    });
    const elsewhere = { servers: [{ url: 'https://evil.example.com' }] };
    expect(only(elsewhere)).toEqual({ action: null, kinds: ['other_host'] });
    expect(only({ servers: [{ url: 'https://api.example.com/v2' }] }).action).toMatchObject({
      url_template: 'https://api.example.com/v2/x',
    });
    expect(only(elsewhere, {}, '/x', { baseUrl: 'https://our.example.com' }).action).toMatchObject({
      url_template: 'https://our.example.com/x',
    });
  });

  test('follows references within the document alone', () => {
    for (const $ref of ['https://evil.example.com/a.json', 'other.yaml#/a', '//evil.example.com'])
      expect(only(body({ $ref }))).toEqual({ action: null, kinds: ['remote_reference'] });
    for (const $ref of ['#/components/schemas/None', '#/__proto__', '#/constructor', '#/openapi'])
      expect(only(body({ $ref }))).toEqual({ action: null, kinds: ['broken_reference'] });
    const round = {
      components: { schemas: { A: { $ref: '#/components/schemas/B' }, B: { $ref: '#/components/schemas/A' } } },
    };
    expect(only(body({ $ref: '#/components/schemas/A' }), round)).toEqual({
      action: null,
      kinds: ['broken_reference'],
    });
  });

  test('has bounded schemas, however they are nested and repeated', () => {
    const self = {
      components: { schemas: { A: { type: 'object', properties: { a: { $ref: '#/components/schemas/A' } } } } },
    };
    expect(only(body({ $ref: '#/components/schemas/A' }), self)).toEqual({
      action: expect.objectContaining({
        parameters: [{ name: 'body', display_name: 'Body', type: 'object', properties: { a: {} } }],
      }),
      kinds: ['simplified'],
    });
    const wide = Object.fromEntries(
      Array.from({ length: 12 }, (_, level) => [
        `L${level}`,
        {
          type: 'object',
          properties: Object.fromEntries(
            'abcdefghij'.split('').map((key) => [key, { $ref: `#/components/schemas/L${level + 1}` }]),
          ),
        },
      ]),
    );
    const tree = { components: { schemas: { ...wide, L12: { type: 'string' } } } };
    const { action, kinds } = only(body({ $ref: '#/components/schemas/L0' }), tree);
    expect(kinds.every((kind) => kind === 'simplified' || kind === 'too_large')).toBe(true);
    expect(JSON.stringify(action ?? null).length).toBeLessThan(9_000);
    let deep: Json = { type: 'string' };
    for (let i = 0; i < 90; i++) deep = { allOf: [deep] };
    expect(only(body(deep)).action).toMatchObject({ parameters: [{ name: 'body' }] });
    const many = {
      parameters: Array.from({ length: 51 }, (_, i) => ({ name: `p${i}`, in: 'query', schema: { type: 'string' } })),
    };
    expect(only(many)).toEqual({ action: null, kinds: ['too_large'] });
  });

  test('takes schemas of 3.1, unions and merged ones', () => {
    const schema = {
      allOf: [
        { type: 'object', properties: { a: { type: ['string', 'null'], pattern: '^x' } }, required: ['a'] },
        {
          properties: {
            b: { oneOf: [{ type: 'null' }, { type: 'integer' }] },
            c: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
          },
        },
      ],
    };
    expect(only(body(schema)).action).toMatchObject({
      parameters: [
        {
          type: 'object',
          properties: { a: { type: 'string', pattern: '^x', required: true }, b: { type: 'integer' }, c: {} },
        },
      ],
    });
    expect(only(body({ type: 'object', properties: { a: { type: 'string', pattern: '(?=x)' } } })).kinds).toEqual([
      'simplified',
    ]);
  });

  test('has names that no other has, and that templates can use', () => {
    const parameters = [
      { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
      { name: 'id', in: 'query', schema: { type: 'string' } },
      { name: 'body', in: 'header', schema: { type: 'string' } },
      { name: 'Authorization', in: 'header', schema: { type: 'string' } },
      { name: '{{id}}', in: 'query', schema: { type: 'string' } },
    ];
    const { action } = only({ parameters, ...body({ type: 'object' }) }, {}, '/x/{id}');
    expect(action).toMatchObject({
      url_template: 'https://api.example.com/x/{{id}}',
      query_params_template: { id: '{{id_query}}', '{{id}}': '{{_id_}}' },
      headers: { body: '{{body}}' },
      body_template: '{{body_2}}',
    });
    const same = { get: { operationId: 'same', ...ok } };
    const { operations } = read(bare({ '/a': same, '/b': same, '/c/{x}': { get: ok } }));
    expect(operations.map((operation) => operation.action!.name)).toEqual(['same', 'same_2', 'get_c_x']);
  });

  test('names no credential and no field of the tool, as a parameter or in a type of a body', () => {
    const parameters = ['key', 'region', 'own'].map((name) => ({ name, in: 'query', schema: { type: 'string' } }));
    const keyed = {
      security: [{ key: [] }],
      components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'x-key' } } },
    };
    const form = body(
      { type: 'object', properties: { region: { type: 'string' } } },
      'application/x-www-form-urlencoded',
    );
    const { action } = only({ parameters, ...form }, keyed, '/x/{key}', { reserved: ['region', 'body'] });
    expect(action).toMatchObject({
      url_template: 'https://api.example.com/x/{{key_2}}',
      query_params_template: { key: '{{key_query}}', region: '{{region_query}}', own: '{{own}}' },
      body_template: 'region={{region_body}}',
    });
    expect(only(body({ type: 'object' }), {}, '/x', { reserved: ['body'] }).action!.body_template).toBe('{{body_2}}');
    for (const type of ['application/json; x={{key}}', 'application/x{{key}}+json', '*/*; {{key}}'])
      expect(only(body({ type: 'object' }, type), keyed)).toEqual({
        action: expect.not.objectContaining({ headers: expect.anything(), body_template: expect.anything() }),
        kinds: ['unsupported'],
      });
  });

  test('sends the fields of a form, and nothing that a template cannot say', () => {
    const fields = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'array' } }, required: ['a'] };
    expect(only(body(fields, 'application/x-www-form-urlencoded'))).toMatchObject({
      action: { body_template: 'a={{a}}', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } },
      kinds: ['unsupported'],
    });
    const required = (parameter: Json) => ({
      parameters: [{ name: 'p', required: true, schema: { type: 'string' }, ...parameter }],
    });
    for (const parameter of [
      { in: 'cookie' },
      { in: 'query', schema: { type: 'object' } },
      { in: 'path', style: 'matrix' },
    ])
      expect(only(required(parameter), {}, '/x/{p}')).toEqual({ action: null, kinds: ['unsupported'] });
    expect(only(required({ in: 'elsewhere' }))).toEqual({ action: null, kinds: ['invalid'] });
  });

  test('keeps nothing that no database keeps', () => {
    const { action } = only({ summary: 'a\u0000b\ud800', description: 'x'.repeat(9_000) });
    expect(action).toMatchObject({ display_name: 'ab\ufffd' });
    expect((action!.description as string).length).toBe(4_000);
    expect(only(body({ type: 'object', properties: { 'a\u0000': { type: 'string' } } }))).toEqual({
      action: null,
      kinds: ['invalid'],
    });
    const proto = '{"type":"object","properties":{"__proto__":{"type":"string"}}}';
    expect(only(body(JSON.parse(proto)))).toEqual({ action: null, kinds: ['invalid'] });
  });
});

describe('a document', () => {
  test('of 10,000 operations is counted, searched and shown in part', () => {
    const paths = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`/things/${i}`, { get: ok }]));
    const found = read(bare(paths), { search: '/things/99', most: 20, keys: ['GET /things/5'] });
    expect([found.total, found.matching, found.operations.length]).toEqual([10_000, 111, 21]);
    const more = Object.fromEntries(Array.from({ length: 20_001 }, (_, i) => [`/things/${i}`, { get: ok }]));
    expect(() => read(bare(more))).toThrow(/more than 20000 operations/);
  });

  test('whose operations all have one name is read like any other', () => {
    const paths = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, i) => [`/things/${i}`, { get: { operationId: 'same', ...ok } }]),
    );
    const asked = vi.spyOn(Set.prototype, 'has');
    onTestFinished(() => void vi.restoreAllMocks());
    const found = read(bare(paths), { keys: ['GET /things/2999'], most: 1 });
    expect(found.operations.map(({ action }) => action!.name)).toEqual(['same', 'same_3000']);
    expect(asked.mock.calls.length).toBeLessThan(100_000);
  });

  test('has an address with the defaults of its variables, or needs one', () => {
    const at = (servers: unknown, task: Partial<ReadTask> = {}) => {
      const { baseUrl, gaps } = read(bare({ '/x': { get: ok } }, { servers }), task);
      return [baseUrl, gaps.map(({ kind }) => kind)];
    };
    const variables = { region: { default: 'eu' } };
    expect(at([{ url: 'https://{region}.example.com/v1', variables }])).toEqual([
      'https://eu.example.com/v1',
      ['simplified'],
    ]);
    expect(at([{ url: 'https://{other}.example.com/v1', variables }])).toEqual([null, ['invalid', 'invalid']]);
    expect(at(undefined)).toEqual([null, ['invalid']]);
    expect(at(undefined, { documentUrl: 'https://docs.example.com/api/openapi.json' })).toEqual([
      'https://docs.example.com',
      [],
    ]);
    expect(at([{ url: '../v2' }], { documentUrl: 'https://docs.example.com/api/openapi.json' })).toEqual([
      'https://docs.example.com/v2',
      [],
    ]);
    for (const url of [
      'ftp://example.com',
      'https://user:pass@example.com',
      'https://example.com?a=b',
      'javascript:alert(1)',
    ])
      expect(at([{ url }])).toEqual([null, ['invalid', 'invalid']]);
  });

  test('has credentials in the form of those that people write, or says why not', () => {
    const oauth = (scopes: Json) => ({
      type: 'oauth2',
      flows: {
        authorizationCode: {
          authorizationUrl: 'https://id.example.com/a',
          tokenUrl: 'https://id.example.com/t',
          scopes,
        },
      },
    });
    const key = (name: string) => ({ type: 'apiKey', in: 'header', name });
    const credentials = (scheme: Json) => {
      const more = { components: { securitySchemes: { it: scheme } }, security: [{ it: [] }] };
      const { credentialSchema, gaps } = read(bare({ '/x': { get: ok } }, more));
      return [credentialSchema.map(({ scopes, placement }) => scopes ?? placement), gaps.map(({ place }) => place)];
    };
    const at = '/components/securitySchemes/it';
    for (const scope of ['a\u0000b', 'a\ud800b', 'a\nb', 'a b', 'a"b', '', 'x'.repeat(256)])
      expect(credentials(oauth({ read: '', [scope]: '' }))).toEqual([
        [['read']],
        [`${at}/flows/authorizationCode/scopes`],
      ]);
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`s${i}`, '']));
    const [[scopes], places] = credentials(oauth(many)) as [string[][], string[]];
    expect([scopes!.length, places]).toEqual([100, [`${at}/flows/authorizationCode/scopes`]]);
    expect(credentials(key('X-Key'))).toEqual([[{ in: 'header', name: 'X-Key' }], []]);
    for (const name of ['a:b(c', 'a b', '', 'x'.repeat(256)]) expect(credentials(key(name))[0]).toEqual([]);
    expect(credentials(key('a:b(c'))[1]).toContain(at);
    const tab = { authorizationCode: { authorizationUrl: 'https://id.example.com/a', tokenUrl: 'https://' } };
    expect(credentials({ type: 'oauth2', flows: tab })[0]).toEqual([]);
  });

  test('gives the credentials that most operations accept', () => {
    const schemes = {
      bearer: { type: 'http', scheme: 'Bearer' },
      basic: { type: 'http', scheme: 'basic' },
      cookie: { type: 'apiKey', in: 'cookie', name: 'sid' },
      id: { type: 'openIdConnect', openIdConnectUrl: 'https://id.example.com' },
      oauth: {
        type: 'oauth2',
        flows: {
          authorizationCode: {
            authorizationUrl: 'https://id.example.com/a',
            tokenUrl: 'https://id.example.com/t',
            scopes: { read: '', write: '' },
          },
        },
      },
    };
    const document = (...security: (Json[] | undefined)[]) =>
      read(
        bare(
          Object.fromEntries(security.map((set, i) => [`/p${i}`, { get: { ...ok, ...(set && { security: set }) } }])),
          {
            components: { securitySchemes: schemes },
          },
        ),
      );
    const { credentialSchema, operations, gaps } = document(
      [{ oauth: ['read'] }],
      [{ cookie: [] }, { oauth: [] }],
      [{ basic: [] }],
      [],
    );
    expect(credentialSchema).toEqual([
      {
        name: 'oauth',
        type: 'oauth2',
        authorization_url: 'https://id.example.com/a',
        token_url: 'https://id.example.com/t',
        scopes: ['read', 'write'],
        required: false,
      },
    ]);
    expect(operations.map(({ action }) => action !== null)).toEqual([true, true, false, true]);
    expect(gaps.map(({ kind, place }) => [kind, place])).toEqual([
      ['unsupported', '/components/securitySchemes/cookie'],
      ['unsupported', '/components/securitySchemes/id'],
      ['other_credentials', '/paths/~1p2/get'],
    ]);
    expect(document([{ bearer: [] }]).credentialSchema).toMatchObject([
      { placement: { prefix: 'Bearer ' }, required: true },
    ]);
    // a parameter that is the credential is not asked for twice
    const keyed = pets() as { paths: Record<string, Record<string, Json>> };
    keyed.paths['/pets']!.post!.parameters = [
      { name: 'X-API-Key', in: 'header', required: true, schema: { type: 'string' } },
    ];
    const add = read(keyed).operations.find(({ operation }) => operation === 'POST /pets');
    expect(add!.action!.headers).toBeUndefined();
  });
});
