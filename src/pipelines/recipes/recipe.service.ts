import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique } from '../../data/changes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { alreadyExists, invalidInput, notFound } from '../../kernel/errors.ts';
import { ownRecipe } from '../organization-recipes/own-recipe.ts';
import { type Recipe, readBuiltInRecipes } from './built-in-recipes.ts';
import { type RecipeCategoryName, recipeCategories } from './recipe.words.ts';
import { applyPlan, type MadeByRecipe } from './recipe-application.ts';
import { endpointsOf, isRunning, type RecipeDefinition, type RecipeDocument } from './recipe-document.ts';
import { type ExportedRecipe, exportApp } from './recipe-export.ts';
import { mapDefinition } from './recipe-mapping.ts';
import { type ApplyRecipe, demandFits, planOf } from './recipe-plan.ts';
import { type MissingPart, surroundingsOf, wordsOf } from './recipe-surroundings.ts';

/** The recipes of a catalogue, in its order. */
export interface RecipeCatalogue {
  recipes: readonly Recipe[];
  total: number;
}

/** A category with the number of its recipes. */
export interface RecipeCategory {
  category: RecipeCategoryName;
  total: number;
}

/** What applying a recipe did, or would do. */
export interface AppliedRecipe extends MadeByRecipe {
  orgId: string;
  message: string;
  recipeId: string;
  /** What the workspace lacks. */
  missing: readonly MissingPart[];
}

const NOTHING: MadeByRecipe = {
  appId: null,
  namespaceId: null,
  augmentationId: null,
  endpointId: null,
  stageIds: [],
  stepIds: [],
};

/** How often a slug is looked for that somebody else takes at the same time. */
const ATTEMPTS = 3;

/** Recipes: templates of apps. Those of the catalogue come with the service and are the same in every organization. */
export class RecipeService {
  readonly #deps: ServiceDeps;
  readonly #catalogue: readonly Recipe[];

  /** @throws Error for a data file that is no recipe */
  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#catalogue = readBuiltInRecipes();
  }

  /** @param category only recipes of this category */
  list(category?: string | null): RecipeCatalogue {
    const recipes = category ? this.#catalogue.filter((recipe) => recipe.category === category) : this.#catalogue;
    return { recipes, total: recipes.length };
  }

  /** All categories, also those without recipes. */
  categories(): RecipeCategory[] {
    return recipeCategories.map((category) => ({ category, total: this.list(category).total }));
  }

  /** @throws RESOURCE_NOT_FOUND `recipe` */
  get(id: string): Recipe {
    const recipe = this.#catalogue.find((one) => one.id === id);
    if (!recipe) throw notFound('recipe', id);
    return recipe;
  }

  /**
   * Makes an app from a recipe, with everything that belongs to it: all or nothing. Missing models, tools and secrets
   * are no failure: they are listed, and schedules are disabled.
   * @throws FORBIDDEN for callers who could not make each part by itself; RESOURCE_NOT_FOUND `recipe`; InputError for
   * parameters, for a given recipe, and for a mapping of what is not there
   */
  async apply(caller: Caller, place: Checked<WorkspacePlace>, input: ApplyRecipe): Promise<AppliedRecipe> {
    const { orgId, workspaceId } = place;
    const { access } = this.#deps;
    for (const part of ['app', 'namespace', 'augmentation', 'endpoint', 'action'] as const)
      await access.requireWorkspace(caller, orgId, workspaceId, `${part}:create`);
    const recipe = await this.#documentOf(caller, place, input);
    const planned = planOf(recipe, input, Boolean(input.recipe));
    const mapped = await mapDefinition(this.#deps, caller, place, planned.definition, input);
    demandFits(planned, mapped.definition);
    const plan = { ...planned, definition: mapped.definition };
    const around = await surroundingsOf(this.#deps, caller, place, mapped, recipe.needs_embedding);
    const { missing } = around;
    const about = { orgId, recipeId: recipe.id, missing };
    const isHeld = missing.length > 0 && (plan.definition.actions ?? []).some(isRunning);
    if (input.dryRun) {
      const message = messageOf(`The recipe would make ${partsOf(plan.definition)}`, missing, isHeld);
      return { ...about, ...NOTHING, message };
    }
    const made = await this.#unique(() =>
      this.#deps.changes.run(caller, (tx) => applyPlan(tx, caller, place, plan, around)),
    );
    return {
      ...about,
      ...made,
      message: messageOf(missing.length > 0 ? 'Recipe applied' : 'Recipe applied successfully', missing, isHeld),
    };
  }

  /**
   * An app as a recipe that {@link apply} accepts.
   * @throws FORBIDDEN for callers who may not read each part; RESOURCE_NOT_FOUND `app`; RESOURCE_CONFLICT `too_large`
   */
  async export(caller: Caller, place: Checked<AppPlace>): Promise<ExportedRecipe> {
    const { orgId, workspaceId, appId } = place;
    for (const part of ['app', 'augmentation', 'endpoint', 'action', 'tool_instance'] as const)
      await this.#deps.access.requireWorkspace(caller, orgId, workspaceId, `${part}:read`, { appId });
    const { slowReads, access } = this.#deps;
    return exportApp({ reads: slowReads.of(place.orgId), access }, caller, place);
  }

  /** The given recipe, or the one that the input names: of the catalogue, or of the organization's own. */
  async #documentOf(caller: Caller, { orgId }: WorkspacePlace, input: ApplyRecipe): Promise<RecipeDocument> {
    if (input.recipe) return givenRecipe(input.recipeId, input.recipe);
    const builtIn = this.#catalogue.find((one) => one.id === input.recipeId);
    return builtIn ?? ownRecipe(this.#deps, caller, orgId, input.recipeId);
  }

  /** Repeats what found a slug free that was taken at the same time by hand. */
  async #unique<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (!brokenUnique(error)) throw error;
        if (attempt === ATTEMPTS) throw alreadyExists('namespace', 'slug', '');
      }
    }
  }
}

/** @throws InputError for another identifier than that of the recipe */
function givenRecipe(recipeId: string, recipe: Record<string, unknown>): RecipeDocument {
  // its form was checked with the input
  const given = recipe as unknown as RecipeDocument;
  if (given.id !== recipeId) throw invalidInput(['input', 'recipeId'], `the id of the given recipe is '${given.id}'`);
  return given;
}

export const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function partsOf(definition: RecipeDefinition): string {
  const { app, augmentations, stages, steps, actions } = definition;
  const counts = [
    counted(augmentations.length, 'augmentation'),
    counted(stages.length, 'stage'),
    counted(steps.length, 'step'),
    counted(endpointsOf(definition).length, 'endpoint'),
    counted(actions?.length ?? 0, 'action'),
  ];
  return `the app '${app.name}' with a namespace, ${counts.slice(0, -1).join(', ')} and ${counts.at(-1)}`;
}

/** Most missing things that a message names. */
const SHOWN = 20;

/** What was done, with what is missing. @param isHeld whether schedules wait for what is missing */
export function messageOf(what: string, missing: readonly MissingPart[], isHeld: boolean): string {
  if (missing.length === 0) return what;
  const more = missing.length > SHOWN ? ` and ${missing.length - SHOWN} more` : '';
  const held = isHeld ? ' Its schedules are disabled: enable them once it has all that it needs.' : '';
  return `${what}. Missing: ${missing.slice(0, SHOWN).map(wordsOf).join(', ')}${more}.${held}`;
}
