import { builder } from '../../graphql/builder.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { appArgs, idArg, organizationArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import type { Recipe as RecipeRow } from './built-in-recipes.ts';
import { MissingPart } from './missing-parts.graph.ts';
import { RecipeCategoryName } from './recipe.enums.ts';
import type {
  AppliedRecipe as AppliedRow,
  RecipeCatalogue as CatalogueRow,
  RecipeCategory as CategoryRow,
} from './recipe.service.ts';
import { limits } from './recipe.words.ts';
import type { RecipeRequirements as RequirementsRow } from './recipe-document.ts';
import type { ExportedRecipe as ExportedRow } from './recipe-export.ts';
import { mappingOf } from './recipe-mapping.inputs.ts';
import { checkForm, recipeSchema } from './recipe-schema.ts';

export const RecipeRequirements = builder.objectRef<RequirementsRow>('RecipeRequirements').implement({
  description: 'What a recipe uses and does not create, with the defaults of its parameters.',
  fields: (t) => ({
    tools: t.exposeStringList('tools', { description: 'Slugs of the tools that it uses.' }),
    models: t.exposeStringList('models', { description: 'Logical models.' }),
    secrets: t.exposeStringList('secrets', { description: 'Names of secrets.' }),
  }),
});

const Recipe = builder.objectRef<RecipeRow>('Recipe').implement({
  description:
    'A template of an app, the same in every organization. `/schemas/recipe.json` of the service describes its form.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier: a word such as `starter-chat`.' }),
    name: t.exposeString('name', { description: 'Display name.' }),
    description: t.exposeString('description', { description: 'What the app is for.' }),
    category: t.expose('category', { type: RecipeCategoryName, description: 'The category.' }),
    icon: t.exposeString('icon', { description: 'The name of an icon.' }),
    tags: t.exposeStringList('tags', { description: 'Labels.' }),
    needsEmbedding: t.exposeBoolean('needs_embedding', { description: 'Whether it needs an embedding model.' }),
    version: t.exposeString('version', { description: 'The version of the recipe.' }),
    requirements: t.expose('requirements', {
      type: RecipeRequirements,
      authorize: 'inherited',
      description: 'What it uses and does not create.',
    }),
    definition: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description:
        'What it creates: `app`, `namespace`, `augmentations`, `stages`, `steps`, `endpoint` and, where there are ' +
        'any, `endpoints` and `actions`. Parts refer to each other by keys.',
      resolve: ({ definition }) => ({ ...definition }),
    }),
    parameters: t.field({
      type: ['JSONObject'],
      authorize: 'inherited',
      description: 'Its parameters, each with `name`, `type`, `description`, `default` and bounds.',
      resolve: ({ parameters }) => parameters.map((parameter) => ({ ...parameter })),
    }),
  }),
});

const RecipeCatalogue = builder.objectRef<CatalogueRow>('RecipeCatalogue').implement({
  description: 'All recipes of the catalogue, in one answer.',
  fields: (t) => ({
    recipes: t.field({
      type: [Recipe],
      authorize: 'inherited',
      description: 'The recipes, by category and then by name.',
      resolve: ({ recipes }) => [...recipes],
    }),
    total: t.exposeInt('total', { description: 'The number of recipes.' }),
  }),
});

const RecipeCategory = builder.objectRef<CategoryRow>('RecipeCategory').implement({
  description: 'A category of recipes.',
  fields: (t) => ({
    category: t.expose('category', { type: RecipeCategoryName, description: 'The category.' }),
    total: t.exposeInt('total', { description: 'The number of its recipes.' }),
  }),
});

builder.queryFields((t) => ({
  recipes: t.field({
    type: RecipeCatalogue,
    description: 'The recipes from which apps can be made.',
    authorize: { organization: 'recipe:read' },
    activity: { action: 'list', resourceType: 'recipe' },
    args: {
      ...organizationArgs(),
      ...builder.args((of) => ({
        category: of.field({
          type: RecipeCategoryName,
          description: 'Only recipes of this category.',
        }),
      })),
    },
    resolve: (_organization, { category }, { services }) => services.recipes.list(category),
  }),
  recipe: t.field({
    type: Recipe,
    description: 'A recipe by its identifier.',
    authorize: { organization: 'recipe:read' },
    args: { ...organizationArgs(), ...idArg('The recipe.') },
    resolve: (_organization, { id }, { services }) => services.recipes.get(id),
  }),
  recipeCategories: t.field({
    type: [RecipeCategory],
    description: 'The categories of recipes, each with the number of its recipes.',
    authorize: { organization: 'recipe:read' },
    activity: { action: 'list', resourceType: 'recipe' },
    args: organizationArgs(),
    resolve: (_organization, _args, { services }) => services.recipes.categories(),
  }),
}));

const AppliedRecipe = builder.objectRef<AppliedRow>('AppliedRecipe').implement({
  description: 'What a recipe made. After a dry run there are no identifiers.',
  fields: (t) => ({
    message: t.exposeString('message', {
      description:
        'What was created, or would be after a dry run, and which tools, models and secrets the workspace lacks ' +
        'for it.',
    }),
    missing: t.field({
      type: [MissingPart],
      authorize: 'inherited',
      description:
        'What the app needs and the workspace lacks. While something is missing, schedules are created disabled.',
      resolve: ({ missing }) => [...missing],
    }),
    recipeId: t.exposeID('recipeId', { description: 'The recipe.' }),
    appId: t.exposeID('appId', { nullable: true, description: 'The new app.' }),
    namespaceId: t.exposeID('namespaceId', { nullable: true, description: 'The new namespace.' }),
    augmentationId: t.exposeID('augmentationId', {
      nullable: true,
      description: 'The first new augmentation. `null` if the recipe has none.',
    }),
    endpointId: t.exposeID('endpointId', {
      nullable: true,
      description: 'The main new endpoint. `null` if the recipe has none.',
    }),
    stageIds: t.exposeStringList('stageIds', { description: 'The new stages of all augmentations, in their order.' }),
    stepIds: t.exposeStringList('stepIds', { description: 'The new steps of all stages, in their order.' }),
  }),
});
refersTo(AppliedRecipe, {
  appId: 'app',
  namespaceId: 'namespace',
  augmentationId: 'augmentation',
  endpointId: 'endpoint',
});

const ExportedRecipe = builder.objectRef<ExportedRow>('ExportedRecipe').implement({
  description: 'An app as a recipe.',
  fields: (t) => ({
    recipe: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: 'The recipe, in the form that `/schemas/recipe.json` describes: `applyRecipe` accepts it.',
      resolve: ({ recipe }) => ({ ...recipe }),
    }),
    warnings: t.exposeStringList('warnings', { description: 'What could not be exported, in words.' }),
  }),
});

const ApplyRecipeInput = builder.inputType('ApplyRecipeInput', {
  description: 'The recipe and the choices for it.',
  fields: (t) => ({
    recipeId: t.id({
      required: true,
      constraints: bounds.id,
      description:
        'A recipe of the catalogue, or a recipe of the organization by its slug, its identifier or the identifier ' +
        'of a version. With `recipe`, it must be the `id` in that recipe.',
    }),
    name: t.string({
      constraints: bounds.name,
      description: 'Name of the app and of the namespace. Default: the names in the recipe.',
    }),
    parameters: t.field({
      type: 'JSONObject',
      description: 'Values of parameters, by name. Omitted parameters have their defaults.',
    }),
    tools: mappingOf(
      t,
      'Replaces tools: from the slug in the recipe, or from `SLUG/NAME` of an instance that the recipe names, to ' +
        'the identifier of a tool instance of the workspace.',
    ),
    models: mappingOf(t, 'Replaces models: from the identifier in the recipe to a model of the organization.'),
    secrets: mappingOf(
      t,
      'Replaces secrets: from the NAME of `{{secret.NAME}}` to the name or identifier of a secret.',
    ),
    dryRun: t.boolean({ description: 'Creates nothing, and answers what would be created. Default false.' }),
    recipe: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: limits.bytes, shape: { name: 'Recipe', schema: recipeSchema, check: checkForm } },
      description: 'The recipe itself, such as an export, instead of `recipeId`. `/schemas/recipe.json` describes it.',
    }),
  }),
});

builder.mutationFields((t) => ({
  applyRecipe: t.field({
    type: AppliedRecipe,
    description:
      'Creates an app from a recipe, with a namespace, augmentations, endpoints and actions, all or nothing. ' +
      '`tools`, `models` and `secrets` replace what the recipe names. What the workspace lacks is no failure: ' +
      '`missing` lists it, and schedules are then disabled. Applying a recipe again creates another app.',
    authorize: { workspace: 'recipe:apply' },
    emits: ['recipe.applied', 'namespace.created', 'app.created'],
    mayEmit: ['augmentation.created', 'endpoint.created', 'action.created'],
    args: { ...workspaceArgs(), ...inputArg(ApplyRecipeInput, 'The recipe.') },
    resolve: ({ workspace }, { input }, { caller, services }) => services.recipes.apply(caller, workspace, input),
  }),
}));

builder.queryFields((t) => ({
  exportRecipe: t.field({
    type: ExportedRecipe,
    description:
      'An app as a recipe. Identifiers become local names, secrets `{{secret.NAME}}`. Members, tokens and ' +
      'history are left out.',
    authorize: { workspace: 'recipe:export', in: 'app' },
    mayFail: ['RESOURCE_CONFLICT'],
    args: appArgs(),
    extensions: { cost: 500 }, // of a whole app
    resolve: ({ app }, _args, { caller, services }) => services.recipes.export(caller, app),
  }),
}));
