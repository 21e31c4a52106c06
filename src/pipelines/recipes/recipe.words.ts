/** Categories of recipes (spec, Recipes), in the order of the catalogue. */
export const recipeCategories = ['starter', 'intermediate', 'advanced'] as const;

/** A category of recipes. */
export type RecipeCategoryName = (typeof recipeCategories)[number];

/** Types that a parameter of a recipe can have. */
export const recipeParameterTypes = ['string', 'integer', 'number', 'boolean'] as const;

/**
 * The most of each part that a recipe has, and the most bytes of its JSON: with what is around it, one request to
 * `/graphql` takes it.
 */
export const limits = {
  bytes: 960 * 1024,
  parameters: 50,
  augmentations: 100,
  stages: 1_000,
  steps: 4_000,
  endpoints: 100,
  actions: 100,
} as const;
