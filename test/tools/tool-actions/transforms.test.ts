import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { changesOf, eventsOf, type Person, register } from '../../support/person.ts';
import { instancesOf, type Json, placesOf } from '../tool-instances/instances.ts';

/* Data transforms through the front door: what each kind makes is in `test/tools/data-transforms`. */

let app: TestApp;
let ann: Person;
let toolId: string;
beforeAll(async () => {
  app = await startTestApp();
});
beforeEach(async () => {
  ann = await register(app);
  const { body } = await ann.call<{ tool_id: string }>('GET', `/v1/orgs/${ann.orgId}/tools/slug/data-transform`);
  toolId = body.tool_id;
});
afterAll(() => app.close());

interface Result extends Json {
  success: boolean;
  code: string;
  result: unknown;
  confirmation: string | null;
}

const create = (custom_actions: Json[], more: Json = {}) =>
  ann.call<{ instance_id: string }>('POST', instancesOf(ann), {
    tool_id: toolId,
    name: 'Work',
    custom_actions,
    ...more,
  });
async function instanceWith(action: Json, more: Json = {}): Promise<string> {
  const { status, body } = await create([{ name: 'work', ...action }], more);
  expect(status, JSON.stringify(body)).toBe(201);
  return body.instance_id;
}
const asked = (id: string, body: Json) =>
  ann.call<Result>('POST', `${instancesOf(ann)}/${id}/execute`, { action: 'work', ...body });
async function run(id: string, parameters: Json, more: Json = {}): Promise<Result> {
  const { status, body } = await asked(id, { parameters, ...more });
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}
const refusal = async (id: string, body: Json) => {
  const { status, body: answer } = await asked(id, body);
  expect(status, JSON.stringify(answer)).toBe(422);
  return (answer as unknown as { detail: { loc: string[]; msg: string }[] }).detail.map(({ loc, msg }) => [
    loc.slice(1).join('.'),
    msg.replace('Value error, ', ''),
  ]);
};

const items = [{ n: 1 }, { n: 20 }];

test.each<[Json, Json, unknown]>([
  [
    { transform_type: 'chunk', chunking: { chunk_size: 2, chunk_overlap: 0, include_metadata: false } },
    { input: 'one two three' },
    ['one two', ' three'],
  ],
  [
    { transform_type: 'extract', input_template: '{{mail.text}}', extract_patterns: [{ name: 'n', pattern: '\\d+' }] },
    { mail: { text: 'No 17' } },
    { n: '17' },
  ],
  [
    { transform_type: 'filter', filter_conditions: [{ field: 'n', operator: 'gt', value: 5 }] },
    { input: items },
    [{ n: 20 }],
  ],
  [
    {
      transform_type: 'map',
      field_mappings: { m: '{{item.n}}', t: '{{word}} {{index}}' },
      parameters: [{ name: 'word' }],
    },
    { input: items, word: 'No' },
    [
      { m: 1, t: 'No 0' },
      { m: 20, t: 'No 1' },
    ],
  ],
  [{ transform_type: 'flatten' }, { input: [[1], 2] }, [1, 2]],
  [{ transform_type: 'aggregate', aggregate_operation: 'sum' }, { input: [1, 2] }, 3],
  [{ transform_type: 'template', output_template: 'Hello {{who}}' }, { who: 'Ann' }, 'Hello Ann'],
])('the transform %j of %j', async (action, parameters, expected) => {
  const id = await instanceWith(action);
  expect(await run(id, parameters)).toMatchObject({ success: true, code: 'ok', format: 'json', result: expected });
});

test('an execution answers like any other, and is recorded, told and counted without values', async () => {
  const id = await instanceWith({ transform_type: 'template', output_template: '{{input}}' });
  expect(await run(id, { input: 'unmistakable' })).toEqual({
    tool_instance_id: id,
    action: 'work',
    success: true,
    code: 'ok',
    message: 'Data transform has a result.',
    request: null,
    confirmation: null,
    confirmation_expires_at: null,
    status: null,
    headers: {},
    format: 'json',
    result: 'unmistakable',
    truncated: false,
    whole_result: null,
    size_bytes: 14,
    excerpt: null,
    pages: null,
    attempts: 0,
    duration_ms: expect.any(Number),
  });
  expect((await eventsOf(app, id)).at(-1)).toBe('tool_action.executed');
  const record = (await changesOf(app, id)).at(-1);
  expect(record).toMatchObject({ action: 'execute', metadata: { code: 'ok', size_bytes: 14 } });
  expect(JSON.stringify(record)).not.toContain('unmistakable');
  const row = await app.database.prisma.toolInstance.findUniqueOrThrow({ where: { id } });
  expect(row.actionCounts).toEqual({ work: { executed: 1, failed: 0 } });
});

test('a result that is not what the action promises is a failure', async () => {
  const id = await instanceWith({ transform_type: 'flatten', output_schema: { type: 'object' } });
  expect(await run(id, { input: [1] })).toMatchObject({ success: false, code: 'schema_mismatch', result: [1] });
  expect((await eventsOf(app, id)).at(-1)).toBe('tool_action.failed');
});

test('a result beyond 256 KiB is cut, and kept whole for a day', async () => {
  const id = await instanceWith({ transform_type: 'template', output_template: '{{input}}{{input}}' });
  const result = await run(id, { input: 'ä'.repeat(100_000) });
  expect(result).toMatchObject({ success: true, format: 'text', truncated: true, size_bytes: 400_002 });
  const { download_url: address } = (result as unknown as { whole_result: { download_url: string } }).whole_result;
  const whole = await app.server.inject({ method: 'GET', url: address.replace(/^https?:\/\/[^/]+/, '') });
  expect(whole.json()).toBe('ä'.repeat(200_000));
});

test('a dry run runs nothing, and what needs a confirmation asks for it', async () => {
  const id = await instanceWith({ transform_type: 'flatten' }, { mcp_requires_confirmation: true });
  const shown = await run(id, { input: [1] }, { dry_run: true });
  expect(shown).toMatchObject({ code: 'dry_run', message: 'The transform can run. It was not run.', result: null });
  const first = await run(id, { input: [1] });
  expect(first).toMatchObject({ code: 'confirmation_required', result: null });
  const { confirmation } = first;
  expect(await refusal(id, { parameters: { input: [2] }, confirmation })).toMatchObject([
    ['confirmation', expect.any(String)],
  ]);
  const again = await run(id, { input: [1] });
  expect(await run(id, { input: [1] }, { confirmation: again.confirmation })).toMatchObject({
    code: 'ok',
    result: [1],
  });
});

test('the names of its templates are its parameters, whatever their values', async () => {
  const id = await instanceWith({ input_template: '{{ document.text }}', parameters: [{ name: 'unused' }] });
  const { body } = await ann.call<{ effective_action_schemas: Json[] }>('GET', `${instancesOf(ann)}/${id}`);
  expect(body.effective_action_schemas[0]).toMatchObject({
    parameters: [{ name: 'unused' }, { name: 'document', type: 'any', required: true }],
  });
  expect(await refusal(id, { parameters: {} })).toEqual([['parameters.document', 'Field required']]);
  expect(await refusal(id, { parameters: { document: {}, other: 1 } })).toEqual([
    ['parameters.other', 'Extra inputs are not permitted'],
  ]);
  expect(await refusal(id, { parameters: { document: 'x' } })).toEqual([
    ['parameters', "it needs a value of 'document.text'"],
  ]);
  expect(await refusal(id, { parameters: { document: { text: '' } }, max_pages: 2 })).toMatchObject([
    ['max_pages', expect.any(String)],
  ]);
});

test('no value of the vault is in reach of a template', async () => {
  const { body: tool } = await ann.call<{ tool_id: string }>('POST', `/v1/orgs/${ann.orgId}/tools`, {
    name: 'Own',
    slug: 'own-transforms',
    description: 'Works on data.',
    custom_action_type: 'data_transform',
    config_schema: [{ name: 'city' }, { name: 'password', type: 'secret' }],
  });
  const id = await instanceWith(
    { transform_type: 'template', output_template: '{{city}} {{password}}' },
    { tool_id: tool.tool_id, configuration: { city: 'Ulm', password: 'open sesame' } },
  );
  expect(await refusal(id, {})).toEqual([['parameters.password', 'Field required']]);
  expect((await run(id, { password: 'mine' })).result).toBe('Ulm mine');
});

describe('a transform that cannot run', () => {
  test.each<[Json, [place: string, message: string][]]>([
    [
      {
        transform_type: 'extract',
        extract_patterns: [
          { name: 'a', pattern: '(?=x)' },
          { name: 'a', pattern: '(b)', group: 2 },
        ],
      },
      [
        ['extract_patterns.0.pattern', 'it is no regular expression of RE2, which has no look-around'],
        ['extract_patterns.1.name', 'another pattern has this name'],
        ['extract_patterns.1.group', 'the expression has no group 2'],
      ],
    ],
    [
      { transform_type: 'extract', extract_patterns: [{ name: 'a', pattern: 'a'.repeat(1_001) }] },
      [['extract_patterns.0.pattern', 'it has more than 1000 characters']],
    ],
    [
      { transform_type: 'extract', extract_patterns: [{ name: 'a', pattern: '(?:.{1000}){1000}' }] },
      [['extract_patterns.0.pattern', 'it is no regular expression of RE2, which has no look-around']],
    ],
    [
      { transform_type: 'extract', extract_patterns: [{ name: 'a', pattern: 'a{1000}'.repeat(100) }] },
      [['extract_patterns.0.pattern', 'it is too large']],
    ],
    [{ transform_type: 'extract' }, [['extract_patterns', 'an extraction needs a pattern']]],
    [
      {
        transform_type: 'filter',
        filter_conditions: [
          { field: 'a[b', operator: 'regex', value: '(' },
          { field: 'a', operator: 'in', value: 'x' },
          { field: 'a', operator: 'contains', value: 'x'.repeat(257) },
        ],
      },
      [
        ['filter_conditions.0.field', 'it is no path such as author.name or items[0]'],
        ['filter_conditions.0.value', 'it is no regular expression of RE2, which has no look-around'],
        ['filter_conditions.1.value', 'the operator needs a list'],
        ['filter_conditions.2.value', 'it has more than 256 characters'],
      ],
    ],
    [
      { chunking: { strategy: 'delimiter', chunk_size: 10, tokenizer_model: 'o200k_base' } },
      [
        ['chunking.tokenizer_model', 'the only tokenizer is cl100k_base'],
        ['chunking.chunk_overlap', 'it must be less than chunk_size'],
        ['chunking.delimiter', 'the strategy needs a delimiter'],
      ],
    ],
    [
      { transform_type: 'template', output_template: Array.from({ length: 51 }, (_, at) => `{{a${at}}}`).join('') },
      [['name', 'the templates of the action name more than 50 inputs']],
    ],
    [{ transform_type: 'map' }, [['field_mappings', 'a mapping needs a property']]],
    [{ transform_type: 'aggregate' }, [['aggregate_operation', 'an aggregation needs an operation']]],
    [{ transform_type: 'template' }, [['output_template', 'a template needs an output']]],
    [
      { transform_type: 'map', field_mappings: { a: '{{name}}', b: '{{itm.x}}', c: '{{input.x}} {{index}}' } },
      [
        [
          'field_mappings.a',
          '{{name}} names no input of the transform and no field of the configuration: did you mean {{item.name}}?',
        ],
        [
          'field_mappings.b',
          '{{itm.x}} names no input of the transform and no field of the configuration: did you mean {{item.itm.x}}?',
        ],
      ],
    ],
    [
      { transform_type: 'flatten', output_template: '{{results}}' },
      [
        [
          'output_template',
          '{{results}} names no input of the transform and no field of the configuration: did you mean {{result}}?',
        ],
      ],
    ],
    [
      { transform_type: 'flatten', url_template: 'https://elsewhere.test' },
      [['url_template', 'a data transform sends no request: leave it out']],
    ],
  ])('is refused when it is written: %j', async (action, expected) => {
    const { status, body } = await create([{ name: 'work', ...action }]);
    expect(status, JSON.stringify(body)).toBe(422);
    const { detail } = body as unknown as { detail: { loc: string[]; msg: string }[] };
    expect(detail.map(({ loc, msg }) => [loc.slice(1).join('.'), msg])).toEqual(
      expected.map(([place, message]) => [`custom_actions.0.${place}`, `Value error, ${message}`]),
    );
  });

  test('is refused when it runs, if it was written before', async () => {
    const id = await instanceWith({ transform_type: 'flatten' });
    const custom_actions = [
      { name: 'work', transform_type: 'extract', extract_patterns: [{ name: 'a', pattern: '(?=x)' }] },
    ];
    await app.database.prisma.toolInstance.update({ where: { id }, data: { customActions: custom_actions } });
    for (const dry_run of [false, true])
      expect(await refusal(id, { parameters: { input: 'x' }, dry_run })).toEqual([
        [
          'action',
          'the action cannot run: extract_patterns.0.pattern: Value error, it is no regular expression of RE2, which ' +
            'has no look-around',
        ],
      ]);
  });

  test('of values of which it makes nothing is refused, and nothing is recorded as done', async () => {
    const id = await instanceWith({ transform_type: 'aggregate', aggregate_operation: 'sum' });
    expect(await refusal(id, { parameters: { input: [1, 'x'] } })).toEqual([
      ['parameters', 'the element 1 of the list is no number'],
    ]);
    expect(await eventsOf(app, id)).not.toContain('tool_action.executed');
    expect(placesOf((await asked(id, { action: 'other' })).body)).toEqual([['action', 'value_error']]);
  });
});
