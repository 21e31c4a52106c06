import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkCustomActions, MAX_CUSTOM_ACTIONS } from '../../../src/tools/tools/custom-actions.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { colleague, type Person, register } from '../../support/person.ts';

interface Answer {
  schemas: Record<string, { type: string; description: string; example: object }>;
  custom_rest_schema: Record<string, unknown>;
  data_transform_schema: Record<string, unknown>;
}

let app: TestApp;
let owner: Person;
let answer: Answer;
let schemas: Record<string, object>;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
  const viewer = await colleague(app, owner, 'viewer');
  const { status, body } = await viewer.call<Answer>('GET', `/v1/orgs/${owner.orgId}/tools/custom-action-schemas`);
  expect(status).toBe(200);
  answer = body;
  const query = 'query ($org: ID!) { customActionSchemas(orgId: $org) { jsonSchemas } }';
  const { data } = await viewer.ask<{ customActionSchemas: { jsonSchemas: typeof schemas } }>(query, {
    org: owner.orgId,
  });
  schemas = data.customActionSchemas.jsonSchemas;
});
afterAll(() => app.close());

/** A parameter descriptor as the spec shows it. */
const parameter = {
  name: null,
  display_name: null,
  type: 'string',
  description: null,
  placeholder: null,
  pattern: null,
  depends_on: null,
  required: false,
  multiline: false,
  sensitive: false,
  default: null,
  options: [],
  properties: {},
  items: {},
  min_length: null,
  max_length: null,
  min_value: null,
  max_value: null,
  enum: [],
};

test('the answer has the fields and initial values of the spec, and nothing else', () => {
  const { schemas: kinds, ...forms } = answer;
  expect(forms).toEqual({
    custom_rest_schema: {
      name: null,
      display_name: null,
      description: null,
      method: 'GET',
      url_template: null,
      body_template: null,
      response_result_path: null,
      rate_limit_group: null,
      headers: {},
      query_params_template: {},
      parameters: [parameter],
      output_schema: { type: 'object', description: null, properties: {}, items: {}, example: null },
      is_read_only: true,
      is_destructive: false,
      requires_confirmation: false,
      timeout_seconds: 1,
      retry_count: 0,
      pagination: {
        type: 'none',
        cursor_param: 'cursor',
        cursor_response_path: '$.next_cursor',
        offset_param: 'offset',
        limit_param: 'limit',
        default_limit: 100,
        page_param: 'page',
        per_page_param: 'per_page',
        default_per_page: 100,
        next_link_path: null,
        has_more_path: null,
        total_count_path: null,
        results_path: '$',
        unique_key: 'id',
        max_pages: 100,
      },
    },
    data_transform_schema: {
      name: null,
      display_name: null,
      description: null,
      transform_type: 'chunk',
      input_template: '{{input}}',
      flatten_template: null,
      aggregate_operation: null,
      output_template: null,
      flatten_depth: 1,
      aggregate_separator: '\n',
      field_mappings: {},
      output_schema: {},
      filter_mode: 'include',
      parameters: [parameter],
      chunking: {
        strategy: 'tokens',
        chunk_size: 500,
        chunk_overlap: 50,
        delimiter: null,
        tokenizer_model: 'cl100k_base',
        include_metadata: true,
      },
      extract_patterns: [{ name: null, pattern: null, flags: '', group: 0, multiple: false, default: null }],
      filter_conditions: [{ field: null, operator: 'eq', value: null }],
    },
  });
  expect(Object.keys(kinds)).toEqual(['custom_rest', 'data_transform']);
  for (const [kind, entry] of Object.entries(kinds))
    expect(entry).toEqual({
      type: kind,
      description: expect.any(String),
      example: expect.any(Object),
    });
});

describe.each(['custom_rest', 'data_transform'])('the JSON Schema of %s', (kind) => {
  const schema = () => schemas[kind]!;

  test('has an address of its own', async () => {
    const { statusCode, headers, body } = await app.server.inject(`/schemas/${kind}.json`);
    expect([statusCode, headers['content-type']]).toEqual([200, 'application/schema+json; charset=utf-8']);
    expect(JSON.parse(body)).toEqual(schema());
  });

  test('is one for a public validator, strictly, and accepts the example', () => {
    const validator = new Ajv2020({ strict: true, strictTypes: true, strictRequired: true, allErrors: true });
    expect(validator.validateSchema(schema())).toBe(true);
    const validate = validator.compile(schema());
    expect(validate(answer.schemas[kind]!.example), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({})).toBe(false);
  });

  test('has a title and description for each field of a form, and the defaults of the initial values', () => {
    const { properties } = schema() as { properties: Record<string, Record<string, unknown>> };
    const form = kind === 'custom_rest' ? answer.custom_rest_schema : answer.data_transform_schema;
    expect(Object.keys(properties).sort()).toEqual(Object.keys(form).sort());
    for (const [name, property] of Object.entries(properties)) {
      expect(property, name).toMatchObject({ title: expect.any(String), description: expect.any(String) });
      if ('default' in property) expect(form[name], name).toEqual(property.default);
    }
  });

  test('is what checks the custom actions of instances: both say the same of the same', () => {
    const validate = new Ajv2020().compile(schema());
    const example = answer.schemas[kind]!.example as Record<string, unknown>;
    for (const change of [
      {},
      { name: undefined },
      { name: 'two words' },
      { description: 5 },
      { parameters: [{ name: 'p', properties: { q: { type: 'string' } } }] },
      { parameters: [{ name: 'p', properties: { q: { type: 'mystery' } } }] },
      { parameters: [{ name: 'p', items: { items: { required: 'yes' } } }] },
      { parameters: 'none' },
      { method: 'BREW', transform_type: 'melt' },
      { timeout_seconds: 0, flatten_depth: 0 },
      { headers: { a: 1 }, field_mappings: { a: 1 } },
      { pagination: { type: 'spiral' }, chunking: { strategy: 'axe' } },
    ]) {
      const action = JSON.parse(JSON.stringify({ ...example, ...change })) as object;
      const { issues } = checkCustomActions(kind, [action]);
      expect(issues.length === 0, JSON.stringify(change)).toBe(validate(action));
    }
  });
});

describe('custom actions of an instance', () => {
  const rest = { name: 'get', url_template: 'https://api.example.com/{{id}}' };

  test('get the defaults of their form, and what is null counts as absent', () => {
    const { issues, actions } = checkCustomActions('custom_rest', [
      { ...rest, description: null, pagination: { type: 'page' }, parameters: [{ name: 'id', default: null }] },
    ]);
    expect(issues).toEqual([]);
    expect(actions).toEqual([
      {
        ...rest,
        method: 'GET',
        headers: {},
        query_params_template: {},
        is_read_only: true,
        is_destructive: false,
        requires_confirmation: false,
        timeout_seconds: 1,
        retry_count: 0,
        parameters: [
          {
            name: 'id',
            type: 'string',
            required: false,
            multiline: false,
            sensitive: false,
            default: null,
            options: [],
            enum: [],
          },
        ],
        pagination: { ...(answer.custom_rest_schema.pagination as object), type: 'page', ...absent },
      },
    ]);
  });
  const absent = { next_link_path: undefined, has_more_path: undefined, total_count_path: undefined };

  test('are refused with the place of what is wrong', () => {
    const places = (type: string, actions: object[]) =>
      checkCustomActions(type, actions).issues.map(({ path, type: of }) => [path.join('.'), of]);
    expect(places('custom_rest', [rest, { ...rest, name: 'set', method: 'BREW' }, { name: 'bare' }])).toEqual([
      ['1.method', 'literal_error'],
      ['2.url_template', 'missing'],
    ]);
    expect(places('custom_rest', [rest, rest])).toEqual([['1.name', 'value_error']]);
    expect(places('none', [rest])).toEqual([['', 'value_error']]);
    expect(places('mcp', [rest])).toEqual([['', 'value_error']]);
    expect(places('none', [])).toEqual([]);
    const many = Array.from({ length: MAX_CUSTOM_ACTIONS + 1 }, (_, n) => ({ ...rest, name: `a${n}` }));
    expect(places('custom_rest', many)).toEqual([['', 'value_error']]);
    expect(places('custom_rest', many.slice(1))).toEqual([]);
    const large = { ...rest, body_template: 'x'.repeat(16_000) };
    expect(
      places(
        'custom_rest',
        Array.from({ length: 20 }, (_, n) => ({ ...large, name: `a${n}` })),
      ),
    ).toEqual([['', 'value_error']]);
  });

  test('that are hostile are refused in little time and with few issues', () => {
    let deep: object = { name: 'p' };
    for (let depth = 0; depth < 60; depth++) deep = { name: 'p', items: deep };
    expect(checkCustomActions('custom_rest', [{ ...rest, parameters: [deep] }]).issues).toEqual([]);
    const wrong = Array.from({ length: 50 }, () => ({ type: 5, required: 5, name: 5 }));
    expect(checkCustomActions('custom_rest', [{ ...rest, parameters: wrong }]).issues).toHaveLength(50);
    const odd = JSON.parse(
      '{"name": "constructor", "url_template": "https://x", "__proto__": {"method": 5}}',
    ) as object;
    expect(checkCustomActions('custom_rest', [odd]).issues).toEqual([]);
  });
});
