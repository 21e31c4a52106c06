import { builder } from '../graphql/builder.ts';
import { idArg, organizationArgs } from '../graphql/place-args.ts';
import type { Recipe as RecipeRow } from './built-in-recipes.ts';
import type { RecipeCatalogue as CatalogueRow, RecipeCategory as CategoryRow } from './recipe.service.ts';
import { categories } from './recipe.words.ts';
import type { RecipeRequirements as RequirementsRow } from './recipe-document.ts';

const RecipeRequirements = builder.objectRef<RequirementsRow>('RecipeRequirements').implement({
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
    category: t.exposeString('category', { description: '`starter`, `intermediate` or `advanced`.' }),
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
    category: t.exposeString('category', { description: '`starter`, `intermediate` or `advanced`.' }),
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
        category: of.string({ constraints: { oneOf: categories }, description: 'Only recipes of this category.' }),
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
