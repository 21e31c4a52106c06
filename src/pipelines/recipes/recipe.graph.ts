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
  description: 'What a recipe uses and does not make, with the defaults of its parameters.',
  fields: (t) => ({
    tools: t.exposeStringList('tools', { description: 'Slugs of the tools of which it uses instances.' }),
    models: t.exposeStringList('models', { description: 'Logical models.' }),
    secrets: t.exposeStringList('secrets', { description: 'Names of secrets.' }),
  }),
});

const Recipe = builder.objectRef<RecipeRow>('Recipe').implement({
  description:
    'A template of an app, the same in every organization. `/schemas/recipe.json` of the service describes its form.',
  fields: (t) => ({
    id: t.exposeID('id', { description: 'What it is known by: a word such as `starter-chat`.' }),
    name: t.exposeString('name', { description: 'What people call it.' }),
    description: t.exposeString('description', { description: 'What the app is for.' }),
    category: t.expose('category', { type: RecipeCategoryName, description: 'The category.' }),
    icon: t.exposeString('icon', { description: 'The name of an icon.' }),
    tags: t.exposeStringList('tags', { description: 'Labels.' }),
    needsEmbedding: t.exposeBoolean('needs_embedding', { description: 'Whether it needs an embedding model.' }),
    version: t.exposeString('version', { description: 'The version of the recipe.' }),
    requirements: t.expose('requirements', {
      type: RecipeRequirements,
      authorize: 'inherited',
      description: 'What it uses and does not make.',
    }),
    definition: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description:
        'What it makes: `app`, `namespace`, `augmentations`, `stages`, `steps`, `endpoint`, and where there are any ' +
        '`endpoints` and `actions`. Parts name each other by keys.',
      resolve: ({ definition }) => ({ ...definition }),
    }),
    parameters: t.field({
      type: ['JSONObject'],
      authorize: 'inherited',
      description: 'What may be chosen: `name`, `type`, `description`, `default` and bounds of each parameter.',
      resolve: ({ parameters }) => parameters.map((parameter) => ({ ...parameter })),
    }),
  }),
});

const RecipeCatalogue = builder.objectRef<CatalogueRow>('RecipeCatalogue').implement({
  description: 'Recipes. They are few: all in one answer.',
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
      description: 'What was done, or would be, and which tools, models and secrets the workspace lacks for it.',
    }),
    missing: t.field({
      type: [MissingPart],
      authorize: 'inherited',
      description:
        'What the app needs and the workspace lacks. While something is missing, schedules are made disabled.',
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
    warnings: t.exposeStringList('warnings', { description: 'What could not be kept, in words.' }),
  }),
});

const ApplyRecipeInput = builder.inputType('ApplyRecipeInput', {
  description: 'The recipe and what is chosen of it.',
  fields: (t) => ({
    recipeId: t.id({
      required: true,
      constraints: bounds.id,
      description:
        'A recipe of the catalogue; of the organization, by its slug or its identifier, or by that of a version. ' +
        'Beside `recipe`: the `id` in it.',
    }),
    name: t.string({
      constraints: bounds.name,
      description: 'Name of the app and of the namespace, in place of those of the recipe.',
    }),
    parameters: t.field({
      type: 'JSONObject',
      description: 'Values of parameters, by name. Others have their defaults.',
    }),
    tools: mappingOf(
      t,
      'What takes the place of tools: the identifier of a tool instance of the workspace, by the slug in the recipe, ' +
        'or by `SLUG/NAME` of an instance that the recipe names.',
    ),
    models: mappingOf(t, 'What takes the place of models: a model of the organization, by the model in the recipe.'),
    secrets: mappingOf(
      t,
      'What takes the place of secrets: the name or identifier of a secret, by the NAME of `{{secret.NAME}}`.',
    ),
    dryRun: t.boolean({ description: 'Makes nothing, and says what would be made. Default false.' }),
    recipe: t.field({
      type: 'JSONObject',
      constraints: { maxBytes: limits.bytes, shape: { name: 'Recipe', schema: recipeSchema, check: checkForm } },
      description:
        'The recipe itself, such as an export, in place of one of the catalogue. `/schemas/recipe.json` describes it.',
    }),
  }),
});

builder.mutationFields((t) => ({
  applyRecipe: t.field({
    type: AppliedRecipe,
    description:
      'Makes an app from a recipe: with a namespace, augmentations, endpoints and actions, all or nothing. `tools`, ' +
      '`models` and `secrets` say what takes the place of what the recipe names. What the workspace lacks is no ' +
      'failure: `missing` lists it, and schedules are disabled then. To apply a recipe again makes another app.',
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
