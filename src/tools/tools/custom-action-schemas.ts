import { type ToolJsonSchema, templateOf } from './json-shape.ts';

/*
 * What custom actions look like (spec, Custom-action and data-transform schemas). These objects are the one source: the
 * operation answers them, forms are generated from them, and they check the `custom_actions` of tool instances.
 */

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

export const MAX_PARAMETERS = 50;
const MAX_TEXT = 4_000;
const MAX_TEMPLATE = 16_000;

const line = (title: string, description: string, more: ToolJsonSchema = {}): ToolJsonSchema => ({
  title,
  description,
  type: 'string',
  maxLength: 255,
  ...more,
});
const text = (title: string, description: string, more: ToolJsonSchema = {}): ToolJsonSchema =>
  line(title, description, { maxLength: MAX_TEXT, ...more });
const template = (title: string, description: string, more: ToolJsonSchema = {}): ToolJsonSchema =>
  line(title, description, { maxLength: MAX_TEMPLATE, ...more });
const flag = (title: string, description: string, initial: boolean): ToolJsonSchema => ({
  title,
  description,
  type: 'boolean',
  default: initial,
});
const count = (
  title: string,
  description: string,
  initial: number,
  minimum: number,
  maximum: number,
): ToolJsonSchema => ({
  title,
  description,
  type: 'integer',
  default: initial,
  minimum,
  maximum,
});
const choice = (title: string, description: string, values: readonly string[], initial?: string): ToolJsonSchema => ({
  title,
  description,
  type: 'string',
  enum: values,
  ...(initial !== undefined && { default: initial }),
});
const texts = (title: string, description: string): ToolJsonSchema => ({
  title,
  description,
  type: 'object',
  default: {},
  maxProperties: 100,
  additionalProperties: { type: 'string', maxLength: MAX_TEXT },
});

/** The name of a parameter, a field or an action: it is a key of objects and a word of templates. */
export const name = (title: string, description: string): ToolJsonSchema =>
  line(title, description, { minLength: 1, maxLength: 128, pattern: '^[A-Za-z_][A-Za-z0-9_.-]*$' });

/** Types of parameters (defaults 4). */
export const parameterTypes = ['string', 'integer', 'number', 'boolean', 'array', 'object', 'file', 'secret'] as const;

/** A parameter of an action, which may be a structure of others. */
export const parameter: ToolJsonSchema = {
  title: 'Action parameter',
  description: 'One input of an action.',
  type: 'object',
  required: ['name'],
  properties: {
    name: name('Name', 'The word for it in templates: {{name}}.'),
    display_name: line('Display name', 'The label in a form.'),
    type: choice('Type', 'The type of its value.', parameterTypes, 'string'),
    description: text('Description', 'What it is for.'),
    placeholder: line('Placeholder', 'Shown in an empty field.'),
    pattern: text('Pattern', 'A regular expression that a text must match.'),
    depends_on: line('Depends on', 'The parameter that must have a value before this one is asked for.'),
    required: flag('Required', 'Whether it must have a value.', false),
    multiline: flag('Multiline', 'Whether a text may have several lines.', false),
    sensitive: flag('Sensitive', 'Whether its value must not be shown or logged.', false),
    default: { title: 'Default', description: 'Its value if none is given.' },
    options: {
      title: 'Options',
      description: 'Values to choose from, such as {"value": "de", "label": "German"}.',
      type: 'array',
      default: [],
      maxItems: 200,
      items: { type: 'object', additionalProperties: { type: 'string', maxLength: MAX_TEXT } },
    },
    properties: {
      title: 'Properties',
      description: 'The parts of an object, by name.',
      type: 'object',
      maxProperties: MAX_PARAMETERS,
      additionalProperties: { $ref: '#/$defs/part' },
    },
    items: { $ref: '#/$defs/part' },
    min_length: { title: 'Shortest', description: 'Least number of characters.', type: 'number', minimum: 0 },
    max_length: { title: 'Longest', description: 'Greatest number of characters.', type: 'number', minimum: 0 },
    min_value: { title: 'Least', description: 'Least number.', type: 'number' },
    max_value: { title: 'Greatest', description: 'Greatest number.', type: 'number' },
    enum: { title: 'Enumeration', description: 'The only values allowed.', type: 'array', default: [], maxItems: 200 },
  },
};

/** A part of a structured parameter: the same, but its name may be that of the property. */
const { required: _named, ...part } = parameter;
export const parameterDefs = { parameter, part: { ...part, title: 'Part of an action parameter' } } as const;

export const parameters: ToolJsonSchema = {
  title: 'Parameters',
  description: 'The inputs of the action.',
  type: 'array',
  maxItems: MAX_PARAMETERS,
  items: { $ref: '#/$defs/parameter' },
};

const output: ToolJsonSchema = {
  title: 'Output',
  description: 'What the action gives, as a JSON Schema.',
  type: 'object',
  properties: {
    type: line('Type', 'The type of the result.', { default: 'object' }),
    description: text('Description', 'What the result is.'),
    properties: { title: 'Properties', description: 'The parts of an object.', type: 'object' },
    items: { title: 'Items', description: 'The elements of a list.', type: 'object' },
    example: { title: 'Example', description: 'A result.' },
  },
};

const pagination: ToolJsonSchema = {
  title: 'Pagination',
  description: 'How the pages of a list are read.',
  type: 'object',
  properties: {
    type: choice('Type', 'The kind of pages.', ['none', 'cursor', 'offset', 'page', 'next_link'], 'none'),
    cursor_param: line('Cursor parameter', 'Query parameter of the cursor.', { default: 'cursor' }),
    cursor_response_path: line('Cursor path', 'Where the answer has the next cursor.', { default: '$.next_cursor' }),
    offset_param: line('Offset parameter', 'Query parameter of the offset.', { default: 'offset' }),
    limit_param: line('Limit parameter', 'Query parameter of the size of a page.', { default: 'limit' }),
    default_limit: count('Default limit', 'Size of a page, by offset or cursor.', 100, 1, 10_000),
    page_param: line('Page parameter', 'Query parameter of the number of the page.', { default: 'page' }),
    per_page_param: line('Per-page parameter', 'Query parameter of the size of a page.', { default: 'per_page' }),
    default_per_page: count('Default per page', 'Size of a page, by number.', 100, 1, 10_000),
    next_link_path: line('Next-link path', 'Where the answer has the address of the next page.'),
    has_more_path: line('Has-more path', 'Where the answer says whether there is more.'),
    total_count_path: line('Total path', 'Where the answer has the number of all results.'),
    results_path: line('Results path', 'Where the answer has the results.', { default: '$' }),
    unique_key: line('Unique key', 'The property that tells results apart.', { default: 'id' }),
    max_pages: count('Most pages', 'How many pages are read at most.', 100, 1, 1_000),
  },
};

/** An HTTP request as an action. */
export const customRest: ToolJsonSchema = {
  $schema: DRAFT,
  title: 'Custom REST action',
  description: 'An HTTP request, made from templates in which {{name}} stands for a parameter.',
  type: 'object',
  required: ['name', 'url_template'],
  properties: {
    name: name('Name', 'Unique in the instance.'),
    display_name: line('Display name', 'The label in a form.'),
    description: text('Description', 'What the action does.'),
    method: choice('Method', 'The HTTP method.', ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'], 'GET'),
    url_template: template('URL', 'Where the request goes: http or https.', {
      minLength: 1,
      pattern: '^(https?://|\\{\\{)',
    }),
    headers: texts('Headers', 'Headers of the request; values are templates.'),
    query_params_template: texts('Query', 'Query parameters; values are templates.'),
    body_template: template('Body', 'The body of the request.'),
    parameters,
    response_result_path: line('Result path', 'Where the answer has the result.'),
    output_schema: output,
    is_read_only: flag('Read-only', 'Whether the request changes nothing.', true),
    is_destructive: flag('Destructive', 'Whether the request may destroy something.', false),
    requires_confirmation: flag('Needs confirmation', 'Whether somebody must agree first.', false),
    timeout_seconds: count('Time limit', 'Seconds until the request is given up.', 1, 1, 300),
    retry_count: count('Retries', 'How often a failed request is sent again.', 0, 0, 10),
    rate_limit_group: line('Rate-limit group', 'Actions of one group share a limit.'),
    pagination,
  },
  $defs: parameterDefs,
};

/** Work on data, without a request, as an action. */
export const dataTransform: ToolJsonSchema = {
  $schema: DRAFT,
  title: 'Data transform',
  description: 'Work on the data of earlier steps, without a request.',
  type: 'object',
  required: ['name'],
  properties: {
    name: name('Name', 'Unique in the instance.'),
    display_name: line('Display name', 'The label in a form.'),
    description: text('Description', 'What the action does.'),
    transform_type: choice(
      'Kind',
      'What is done to the input.',
      ['chunk', 'extract', 'filter', 'map', 'flatten', 'aggregate', 'template'],
      'chunk',
    ),
    input_template: template('Input', 'The input, as a template.', { default: '{{input}}' }),
    chunking: {
      title: 'Chunks',
      description: 'How a text is cut (chunk).',
      type: 'object',
      properties: {
        strategy: choice(
          'Strategy',
          'What is counted.',
          ['tokens', 'characters', 'sentences', 'paragraphs', 'delimiter'],
          'tokens',
        ),
        chunk_size: count('Size', 'How much a chunk has at most.', 500, 1, 100_000),
        chunk_overlap: count('Overlap', 'How much of a chunk the next one repeats.', 50, 0, 99_999),
        delimiter: line('Delimiter', 'Where the text is cut (delimiter).'),
        tokenizer_model: line('Tokenizer', 'The tokens that are counted.', { default: 'cl100k_base' }),
        include_metadata: flag('Metadata', 'Whether a chunk says where it was.', true),
      },
    },
    extract_patterns: {
      title: 'Patterns',
      description: 'What is taken from a text (extract).',
      type: 'array',
      maxItems: 50,
      items: {
        type: 'object',
        required: ['name', 'pattern'],
        properties: {
          name: name('Name', 'The property of the result.'),
          pattern: text('Pattern', 'A regular expression.', { minLength: 1 }),
          flags: line('Flags', 'Flags of the expression.', { default: '', pattern: '^[dgimsuvy]*$', maxLength: 8 }),
          group: count('Group', 'The group whose text is taken; 0 is the whole match.', 0, 0, 99),
          multiple: flag('All', 'Whether every match is taken.', false),
          default: text('Default', 'The result if nothing matches.'),
        },
      },
    },
    filter_conditions: {
      title: 'Conditions',
      description: 'Which elements are meant (filter).',
      type: 'array',
      maxItems: 50,
      items: {
        type: 'object',
        required: ['field'],
        properties: {
          field: line('Field', 'A property of the element.', { minLength: 1 }),
          operator: choice(
            'Operator',
            'How it is compared.',
            [
              'eq',
              'ne',
              'gt',
              'gte',
              'lt',
              'lte',
              'in',
              'not_in',
              'contains',
              'not_contains',
              'starts_with',
              'ends_with',
              'regex',
              'exists',
            ],
            'eq',
          ),
          value: { title: 'Value', description: 'What it is compared with.' },
        },
      },
    },
    filter_mode: choice('Mode', 'Whether the elements are kept or left out.', ['include', 'exclude'], 'include'),
    field_mappings: texts('Mapping', 'Templates by the property of the result (map).'),
    flatten_template: template('List', 'The list to flatten, as a template (flatten).'),
    flatten_depth: count('Depth', 'How many levels are flattened.', 1, 1, 64),
    aggregate_operation: choice('Operation', 'How elements become one value (aggregate).', [
      'join',
      'count',
      'sum',
      'avg',
      'min',
      'max',
      'first',
      'last',
      'unique',
    ]),
    aggregate_separator: line('Separator', 'What stands between joined texts.', { default: '\n' }),
    output_template: template('Output', 'The result, as a template.'),
    parameters,
    output_schema: { title: 'Output schema', description: 'The result, as a JSON Schema.', type: 'object' },
  },
  $defs: parameterDefs,
};

/** The kinds of custom actions that have a form. */
export type CustomActionKind = 'custom_rest' | 'data_transform';

/** Each form with what the operation says of it. */
export const customActionForms: Readonly<
  Record<CustomActionKind, { description: string; schema: ToolJsonSchema; example: Readonly<Record<string, unknown>> }>
> = {
  custom_rest: {
    description: 'A request to an HTTP API: method, address, headers, query and body are templates of parameters.',
    schema: customRest,
    example: {
      name: 'get_issue',
      display_name: 'Get an issue',
      description: 'Reads one issue of a repository.',
      method: 'GET',
      url_template: 'https://api.example.com/repos/{{repository}}/issues/{{number}}',
      headers: { accept: 'application/json' },
      parameters: [
        { name: 'repository', display_name: 'Repository', type: 'string', required: true },
        { name: 'number', display_name: 'Number', type: 'integer', required: true, min_value: 1 },
      ],
      response_result_path: '$',
      timeout_seconds: 10,
    },
  },
  data_transform: {
    description: 'Work on the data of earlier steps: cutting, extracting, filtering, mapping, joining.',
    schema: dataTransform,
    example: {
      name: 'split_into_chunks',
      display_name: 'Split into chunks',
      description: 'Cuts a text into parts for an index.',
      transform_type: 'chunk',
      input_template: '{{document.text}}',
      chunking: { strategy: 'sentences', chunk_size: 40, chunk_overlap: 2 },
    },
  },
};

/** The answer of the operation: what there is, both forms with their initial values, and in GraphQL their schemas. */
export const customActionSchemas = {
  schemas: Object.fromEntries(
    Object.entries(customActionForms).map(([type, { description, example }]) => [type, { type, description, example }]),
  ),
  jsonSchemas: Object.fromEntries(Object.entries(customActionForms).map(([type, { schema }]) => [type, schema])),
  customRestSchema: templateOf(customRest) as Record<string, unknown>,
  dataTransformSchema: templateOf(dataTransform) as Record<string, unknown>,
};
