/** How much an organization stores: what one recipe may have is in `recipe.words.ts`. */
export const ownLimits = {
  recipes: 500,
  /** The newest versions of one recipe that are kept. */
  versions: 50,
  /** Of the documents of all versions of all recipes. */
  bytes: 256 * 1024 * 1024,
} as const;
