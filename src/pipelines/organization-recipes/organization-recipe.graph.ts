import { builder } from '../../graphql/builder.ts';
import { inOrganization, tracked } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { deletePayload } from '../../graphql/payloads.ts';
import { appArgs, idArg, organizationArgs } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { readable } from '../../graphql/resource.ts';
import { inside } from '../../graphql/row-places.ts';
import { Versioned, versionArg } from '../../graphql/versions.ts';
import type { Constraints } from '../../kernel/constraints.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import { KEY, MAX_KEY_LENGTH } from '../augmentations/augmentation.words.ts';
import { RecipeCategoryName } from '../recipes/recipe.enums.ts';
import { RecipeRequirements } from '../recipes/recipe.graph.ts';
import { limits } from '../recipes/recipe.words.ts';
import { checkForm, recipeSchema } from '../recipes/recipe-schema.ts';
import type {
  RecipeContent as ContentRow,
  RecipeMadeOfApp as MadeRow,
  OrganizationRecipeVersion as VersionRow,
} from './organization-recipe.service.ts';

/** Documents are large, and an answer must have room for those of a page. */
const ofDocument = { cost: 500 };

const RecipeContent = builder.objectRef<ContentRow>('RecipeContent').implement({
  description: 'A version of a recipe, in full.',
  fields: (t) => ({
    recipe: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: 'The recipe, in the form that `/schemas/recipe.json` describes: `applyRecipe` accepts it.',
      resolve: ({ recipe }) => ({ ...recipe }),
    }),
    requirements: t.expose('requirements', {
      type: RecipeRequirements,
      authorize: 'inherited',
      description: 'What it uses and does not create.',
    }),
  }),
});

const OrganizationRecipe = builder.prismaObject('OrganizationRecipe', {
  description:
    'A recipe that an organization has stored, with its versions. Its fields are taken from the latest version. ' +
    '`applyRecipe` creates apps from it.',
  interfaces: [Node, Versioned],
  fields: (t) => ({
    slug: t.exposeString('slug', {
      description:
        'The `id` in its document. It is unique in the organization, and differs from every recipe of the ' +
        'catalogue.',
    }),
    name: t.exposeString('name', { description: 'Display name.' }),
    description: t.exposeString('description', { description: 'What the app is for.' }),
    category: t.expose('category', { type: RecipeCategoryName, description: 'The category.' }),
    icon: t.exposeString('icon', { description: 'The name of an icon.' }),
    tags: t.exposeStringList('tags', { description: 'Labels.' }),
    needsEmbedding: t.exposeBoolean('needsEmbedding', { description: 'Whether it needs an embedding model.' }),
    latestVersion: t.exposeInt('latestVersion', { description: 'The number of its latest version.' }),
    content: t.field({
      type: RecipeContent,
      authorize: 'inherited',
      description: 'The latest version, in full.',
      extensions: ofDocument,
      resolve: ({ id, orgId, latestVersion }, _args, context) =>
        context.services.organizationRecipes.content(context, {
          orgId,
          organizationRecipeId: id,
          number: latestVersion,
        }),
    }),
  }),
});
inOrganization(OrganizationRecipe, 'organization_recipe');
tracked(OrganizationRecipe);
readable(OrganizationRecipe, {
  kind: 'organization_recipe',
  below: Organization,
  reads: ({ organizationRecipes }) => organizationRecipes.reads,
});

const OrganizationRecipeVersion = builder.objectRef<VersionRow>('OrganizationRecipeVersion').implement({
  description: "A version of an organization's recipe. It never changes. The newest 50 versions are kept.",
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `rcpv_…`: `applyRecipe` accepts it as a recipe.' }),
    organizationRecipeId: t.exposeID('organizationRecipeId', { description: 'The recipe.' }),
    number: t.exposeInt('number', { description: 'Its number in the recipe: from 1.' }),
    sizeBytes: t.exposeInt('sizeBytes', { description: 'The size of its document, as JSON.' }),
    createdBy: t.exposeID('createdBy', { nullable: true, description: 'The user who stored it.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was stored.' }),
    content: t.field({
      type: RecipeContent,
      authorize: 'inherited',
      description: 'The version in full.',
      extensions: ofDocument,
      resolve: (version, _args, context) => context.services.organizationRecipes.content(context, version),
    }),
  }),
});
refersTo(OrganizationRecipeVersion, {
  organizationRecipeId: { kind: 'organization_recipe', required: true },
  createdBy: 'user',
});
const VersionConnection = pageType('OrganizationRecipeVersion', OrganizationRecipeVersion);

builder.objectField(OrganizationRecipe, 'versions', (t) =>
  t.field({
    type: VersionConnection,
    description: 'The versions of the recipe, newest first.',
    authorize: { organization: 'organization_recipe:read' },
    args: pageArgs(),
    resolve: (row, args, context) =>
      context.services.organizationRecipes.versions.list(context, inside.recipe(row), args),
  }),
);

const target = () => ({ ...organizationArgs(), ...idArg('The recipe.') });

builder.queryFields((t) => ({
  organizationRecipeVersions: t.field({
    type: VersionConnection,
    description: "The versions of an organization's recipe, newest first.",
    authorize: { organization: 'organization_recipe:read' },
    activity: { action: 'list', resourceType: 'organization_recipe' },
    args: { ...target(), ...pageArgs() },
    resolve: async ({ organization }, { id, ...args }, context) => {
      const { reads, versions } = context.services.organizationRecipes;
      return versions.list(context, inside.recipe(await reads.get(context, organization, id)), args);
    },
  }),
  organizationRecipeVersion: t.field({
    type: OrganizationRecipeVersion,
    description: "A version of an organization's recipe.",
    authorize: { organization: 'organization_recipe:read' },
    activity: { action: 'read', resourceType: 'organization_recipe_version' },
    args: {
      ...organizationArgs(),
      organizationRecipeId: t.arg.id({ required: true, constraints: bounds.id, description: 'The recipe.' }),
      ...idArg('The version.'),
    },
    resolve: async ({ organization }, { organizationRecipeId, id }, context) => {
      const { reads, versions } = context.services.organizationRecipes;
      const recipe = await reads.get(context, organization, organizationRecipeId);
      return versions.get(context, inside.recipe(recipe), id);
    },
  }),
}));

const document = {
  maxBytes: limits.bytes,
  shape: { name: 'Recipe', schema: recipeSchema, check: checkForm },
} as const satisfies Constraints;

const CreateOrganizationRecipeInput = builder.inputType('CreateOrganizationRecipeInput', {
  description: 'A new recipe for the organization.',
  fields: (t) => ({
    recipe: t.field({
      type: 'JSONObject',
      required: true,
      constraints: document,
      description:
        'The recipe, such as an export. `/schemas/recipe.json` describes it. Its `id` becomes the slug; the service ' +
        'derives its `requirements`.',
    }),
  }),
});

const UpdateOrganizationRecipeInput = builder.inputType('UpdateOrganizationRecipeInput', {
  description: 'The next version.',
  fields: (t) => ({
    recipe: t.field({
      type: 'JSONObject',
      constraints: { ...document, notNull: true },
      description: 'The recipe. Another `id` is another slug. Without it, nothing changes.',
    }),
  }),
});

const CreateRecipeOfAppInput = builder.inputType('CreateRecipeOfAppInput', {
  description: 'Values that replace parts of the export of the app.',
  fields: (t) => ({
    slug: t.string({
      constraints: { pattern: KEY, maxLength: MAX_KEY_LENGTH },
      description: 'The slug. Default: made from the name of the app.',
    }),
    name: t.string({ constraints: bounds.name, description: 'Display name. Default: the name of the app.' }),
    description: t.string({
      constraints: bounds.description,
      description: 'What the app is for. Default: the description of the app.',
    }),
    category: t.field({ type: RecipeCategoryName, description: 'Default `intermediate`.' }),
    icon: t.string({ constraints: bounds.slug, description: 'The name of an icon. Default `app`.' }),
    tags: t.stringList({ constraints: bounds.tags, description: 'Labels. Default: none.' }),
  }),
});

const RecipeMadeOfApp = builder.objectRef<MadeRow>('RecipeMadeOfApp').implement({
  description: 'A recipe that was made of an app.',
  fields: (t) => ({
    organizationRecipe: t.field({
      type: OrganizationRecipe,
      authorize: 'inherited',
      description: 'The recipe.',
      resolve: ({ organizationRecipe }) => organizationRecipe,
    }),
    warnings: t.exposeStringList('warnings', { description: 'What could not be exported, in words.' }),
  }),
});

const DeleteOrganizationRecipePayload = deletePayload('DeleteOrganizationRecipe', { noun: 'recipe', in: ['orgId'] });

builder.mutationFields((t) => ({
  createOrganizationRecipe: t.field({
    type: OrganizationRecipe,
    description: 'Stores a recipe for the organization.',
    authorize: { organization: 'organization_recipe:create' },
    emits: ['organization_recipe.created'],
    args: { ...organizationArgs(), ...inputArg(CreateOrganizationRecipeInput, 'The recipe.') },
    resolve: ({ organization }, { input }, { caller, services }) =>
      services.organizationRecipes.create(caller, organization, input),
  }),
  createRecipeOfApp: t.field({
    type: RecipeMadeOfApp,
    description:
      'Stores the export of an app as a recipe of the organization (see `exportRecipe`). It also needs ' +
      '`organization_recipe:create`.',
    authorize: { workspace: 'recipe:export', in: 'app' },
    activity: { action: 'create', resourceType: 'organization_recipe' },
    emits: ['organization_recipe.created'],
    args: { ...appArgs(), ...inputArg(CreateRecipeOfAppInput, 'Values that replace parts of the export.') },
    extensions: { cost: 500 }, // of a whole app
    resolve: ({ app }, { input }, { caller, services }) => services.organizationRecipes.createOfApp(caller, app, input),
  }),
  updateOrganizationRecipe: t.field({
    type: OrganizationRecipe,
    description: 'Stores the next version of a recipe. Apps that were created from it do not change.',
    authorize: { organization: 'organization_recipe:update' },
    emits: ['organization_recipe.updated'],
    args: { ...target(), ...inputArg(UpdateOrganizationRecipeInput, 'The next version.'), ...versionArg() },
    resolve: ({ organization }, { id, input }, { caller, services }) =>
      services.organizationRecipes.update(caller, organization, id, input),
  }),
  deleteOrganizationRecipe: t.field({
    type: DeleteOrganizationRecipePayload,
    description: 'Deletes a recipe with all its versions. Apps that were created from it stay.',
    authorize: { organization: 'organization_recipe:delete' },
    emits: ['organization_recipe.deleted'],
    args: { ...target(), ...versionArg() },
    resolve: ({ organization }, { id }, { caller, services }) =>
      services.organizationRecipes.delete(caller, organization, id),
  }),
}));
