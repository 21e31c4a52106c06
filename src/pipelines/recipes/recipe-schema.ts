import { OPEN_WORD } from '../../kernel/constraints.ts';
import { shapeCheck, type ToolJsonSchema } from '../../tools/tools/json-shape.ts';
import { kinds } from '../actions/action.words.ts';
import {
  executionModes,
  KEY,
  MAX_ACTION_LENGTH,
  MAX_KEY_LENGTH,
  statuses,
} from '../augmentations/augmentation.words.ts';
import { MAX_PATH_LENGTH, methods, PATH } from '../endpoints/endpoint.words.ts';
import { limits, recipeCategories, recipeParameterTypes } from './recipe.words.ts';

/** Parts of the schemas of documents. */
export const name = (description: string) => ({ type: 'string', minLength: 1, maxLength: 255, description }) as const;
export const text = (description: string) => ({ type: 'string', maxLength: 4_000, description }) as const;
export const free = (description: string) => ({ type: 'object', description }) as const;
export const flag = (description: string) => ({ type: 'boolean', description }) as const;
export const key = (description: string) =>
  ({ type: 'string', pattern: `^${KEY}$`, minLength: 1, maxLength: MAX_KEY_LENGTH, description }) as const;
export const list = (maxItems: number, item: string, description: string) =>
  ({ type: 'array', maxItems, items: { $ref: `#/$defs/${item}` }, description }) as const;
const texts = (description: string) =>
  ({ type: 'array', maxItems: 1_000, items: { type: 'string', maxLength: 255 }, description }) as const;
export const form = (
  required: readonly string[],
  properties: ToolJsonSchema['properties'],
  description: string,
  title?: string,
): ToolJsonSchema => ({
  ...(title && { title }),
  type: 'object',
  required,
  additionalProperties: false,
  properties,
  description,
});

const description = text('Free text.');
const augmentation = key('The key of the augmentation that it runs.');
const endpoint = form(
  ['key', 'augmentation', 'name', 'path'],
  {
    key: key('Its local name.'),
    augmentation,
    name: name('A label.'),
    description,
    path: { type: 'string', pattern: `^${PATH}$`, maxLength: MAX_PATH_LENGTH, description: 'Unique in the recipe.' },
    method: { type: 'string', enum: methods, default: 'POST', description: 'HTTP method of requests.' },
    enabled: flag('Whether it is in use. Default true.'),
    metadata: free('Free-form data.'),
  },
  'An address at which the app answers.',
  'Recipe endpoint',
);

export const definition = form(
  ['app', 'namespace', 'augmentations', 'stages', 'steps'],
  {
    app: form(
      ['name'],
      { name: name('Its name.'), description, metadata: free('Free-form data.') },
      'The app that the recipe makes.',
    ),
    namespace: form(
      ['name'],
      {
        name: name('Its name.'),
        slug: { ...key('Its slug. Default: made from the name. A slug that is taken gets a number.'), maxLength: 64 },
        description,
      },
      'The namespace that the recipe makes.',
    ),
    augmentations: list(limits.augmentations, 'augmentation', 'What the app does with requests.'),
    stages: list(limits.stages, 'stage', 'The stages of all augmentations, in the order of each augmentation.'),
    steps: list(limits.steps, 'step', 'The steps of all stages, in the order of each stage.'),
    endpoint: { ...endpoint, description: 'The main address of the app.' },
    endpoints: list(limits.endpoints, 'endpoint', 'Further addresses.'),
    actions: list(limits.actions, 'action', 'What starts augmentations besides requests.'),
  },
  'What the recipe makes. Parts name each other by keys.',
);

/**
 * The form of a recipe: of the data files, of exports, and of what is given to be applied. Published at
 * `/schemas/recipe.json`.
 */
export const recipeSchema: ToolJsonSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Recipe',
  ...form(
    ['id', 'name', 'description', 'category', 'icon', 'tags', 'needs_embedding', 'version', 'parameters', 'definition'],
    {
      $schema: { type: 'string', maxLength: 2_048, description: 'Where this schema is, for editors.' },
      id: key('Its identifier.'),
      name: name('Display name.'),
      description: text('What the app is for.'),
      category: { type: 'string', enum: recipeCategories, description: 'How much one must know to use it.' },
      icon: { type: 'string', pattern: `^${KEY}$`, maxLength: 64, description: 'The name of an icon.' },
      tags: {
        type: 'array',
        maxItems: 50,
        items: { type: 'string', minLength: 1, maxLength: 64 },
        description: 'Labels.',
      },
      needs_embedding: flag('Whether it needs an embedding model.'),
      version: name('The version of the recipe, free text.'),
      requirements: form(
        ['tools', 'models', 'secrets'],
        { tools: texts('Slugs of tools.'), models: texts('Logical models.'), secrets: texts('Names of secrets.') },
        'What the recipe uses and does not make. The service derives it from the definition.',
      ),
      parameters: list(limits.parameters, 'parameter', 'What a user who applies the recipe may choose.'),
      definition,
    },
    'A template of an app. A text of the definition may contain {{parameters.NAME}}; the references to parts of the ' +
      'recipe, {{app}}, {{namespace}} and {{KIND.KEY}} such as {{augmentation.KEY}}, which become identifiers, of a ' +
      'step also {{step.AUGMENTATION.KEY}}; and what stays: {{secret.NAME}}, and in a step {{steps.KEY.FIELD}} and ' +
      '{{step.KEY}} of its own augmentation. {{literal.TEXT}} becomes the text {{TEXT}}.',
  ),
  $defs: {
    parameter: form(
      ['name', 'type'],
      {
        name: { type: 'string', pattern: '^[a-z][a-z0-9_]*$', maxLength: 64, description: 'Unique in the recipe.' },
        type: { type: 'string', enum: recipeParameterTypes, description: 'What its value is.' },
        description,
        default: { description: 'Its value if none is given. Without a default, a value must be given.' },
        enum: {
          type: 'array',
          minItems: 1,
          maxItems: 100,
          items: { type: 'string', maxLength: 255 },
          description: 'The values that a text may have.',
        },
        minimum: { type: 'number', description: 'The least value of a number.' },
        maximum: { type: 'number', description: 'The greatest value of a number.' },
        max_length: {
          type: 'integer',
          minimum: 1,
          maximum: 10_000,
          description: 'The longest text. Default 4,000 characters.',
        },
      },
      'A parameter.',
      'Recipe parameter',
    ),
    augmentation: form(
      ['key', 'name'],
      {
        key: key('Its local name.'),
        name: name('A label.'),
        description,
        status: { type: 'string', enum: statuses, default: 'active', description: 'Its status.' },
        metadata: free('Free-form data.'),
      },
      'A pipeline of stages.',
      'Recipe augmentation',
    ),
    stage: form(
      ['key', 'augmentation', 'name'],
      {
        key: key('Its local name.'),
        augmentation: key('The key of its augmentation.'),
        name: name('A label.'),
        execution_mode: {
          type: 'string',
          enum: executionModes,
          default: 'sequential',
          description: 'How its steps run.',
        },
      },
      'A stage of an augmentation.',
      'Recipe stage',
    ),
    step: form(
      ['key', 'stage', 'name', 'step_type'],
      {
        key: key('Its local name, unique in its augmentation, and its key there.'),
        stage: key('The key of its stage.'),
        name: name('A label.'),
        step_type: {
          type: 'string',
          pattern: `^${OPEN_WORD}$`,
          maxLength: 64,
          description: 'llm, tool, retrieval, transform, condition, output, or another word.',
        },
        config: free('Its settings.'),
        model: { type: 'string', minLength: 1, maxLength: 128, description: 'The logical model that it uses.' },
        tool: {
          type: 'string',
          minLength: 1,
          maxLength: 64,
          description: 'The slug of the tool of which it uses an instance: one of the workspace, or none.',
        },
        tool_instance: {
          type: 'string',
          minLength: 1,
          maxLength: 255,
          description: 'The name of that instance, if it matters which.',
        },
        action: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_ACTION_LENGTH,
          description: 'The action of the tool that it calls.',
        },
      },
      'A step of a stage.',
      'Recipe step',
    ),
    endpoint,
    action: form(
      ['key', 'augmentation', 'name'],
      {
        key: key('Its local name.'),
        augmentation,
        name: name('A label.'),
        description,
        kind: { type: 'string', enum: kinds, default: 'manual', description: 'What starts it.' },
        trigger_event: { type: 'string', maxLength: 128, description: 'The event that starts it.' },
        cron: { type: 'string', maxLength: 255, description: 'When it starts, as a cron expression of five fields.' },
        timezone: { type: 'string', maxLength: 64, description: 'The time zone of that. Default UTC.' },
        enabled: flag('Whether it is in use. Default true.'),
        input: free('What its augmentation gets.'),
      },
      'What starts an augmentation besides requests.',
      'Recipe action',
    ),
  },
};

/** Checks the form of a recipe. What its parts say about each other is checked by `definitionIssues`. */
export const checkForm = shapeCheck(recipeSchema);

/** Checks the form of a definition again, once its parameters have their values. */
export const checkDefinitionForm = shapeCheck({ ...definition, $defs: recipeSchema.$defs! });
