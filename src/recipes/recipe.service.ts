import { notFound } from '../core/errors.ts';
import { type Recipe, readBuiltInRecipes } from './built-in-recipes.ts';
import { type Category, categories } from './recipe.words.ts';

/** The recipes of a catalogue, in its order. */
export interface RecipeCatalogue {
  recipes: readonly Recipe[];
  total: number;
}

/** A category with the number of its recipes. */
export interface RecipeCategory {
  category: Category;
  total: number;
}

/** Recipes: templates of apps. Those of the catalogue come with the service and are the same in every organization. */
export class RecipeService {
  readonly #catalogue: readonly Recipe[];

  /** @throws Error for a data file that is no recipe */
  constructor() {
    this.#catalogue = readBuiltInRecipes();
  }

  /** @param category only recipes of this category */
  list(category?: string | null): RecipeCatalogue {
    const recipes = category ? this.#catalogue.filter((recipe) => recipe.category === category) : this.#catalogue;
    return { recipes, total: recipes.length };
  }

  /** All categories, also those without recipes. */
  categories(): RecipeCategory[] {
    return categories.map((category) => ({ category, total: this.list(category).total }));
  }

  /** @throws RESOURCE_NOT_FOUND `recipe` */
  get(id: string): Recipe {
    const recipe = this.#catalogue.find((one) => one.id === id);
    if (!recipe) throw notFound('recipe', id);
    return recipe;
  }
}
