import type { ConstraintIssue } from '../../kernel/constraints.ts';
import { InputError, type InputIssue, invalidInput } from '../../kernel/errors.ts';
import { declarationIssues, definitionIssues } from './recipe-check.ts';
import type { RecipeDefinition, RecipeDocument } from './recipe-document.ts';
import type { RecipeMapping } from './recipe-mapping.ts';
import { parametersIn, parameterValues, TooLarge, withParameters } from './recipe-parameters.ts';
import { type LocalIds, newLocalIds, withIds } from './recipe-references.ts';
import { checkDefinitionForm } from './recipe-schema.ts';

/** What a caller gives to apply a recipe. */
export interface ApplyRecipe extends RecipeMapping {
  recipeId: string;
  /** Name of the app and the namespace, in place of those of the recipe. */
  name?: string | null;
  parameters?: Record<string, unknown> | null;
  /** Only says what would be made. */
  dryRun?: boolean | null;
  /** The recipe itself, in place of one of the catalogue. Its form is checked already. */
  recipe?: Record<string, unknown> | null;
}

/** What applying a recipe makes. */
export interface RecipePlan {
  recipe: RecipeDocument;
  /** With the values of the parameters and the identifiers of the parts. */
  definition: RecipeDefinition;
  /** With the values of the parameters alone. */
  written: RecipeDefinition;
  ids: LocalIds;
}

/** Most issues that one answer lists. */
const SHOWN = 50;

/**
 * Puts values and identifiers into the definition of a recipe, and checks it as if each part was made by itself.
 * @param isGiven whether the caller gave the recipe, and did not name one of the catalogue
 * @throws InputError: at the parameter that a wrong text comes from, else at the place in the given recipe
 */
export function planOf(recipe: RecipeDocument, input: ApplyRecipe, isGiven: boolean): RecipePlan {
  if (isGiven) refuse(['input', 'recipe', 'parameters'], declarationIssues(recipe.parameters));
  const { values, issues } = parameterValues(recipe.parameters, input.parameters ?? {});
  refuse(['input', 'parameters'], issues);
  const ids = newLocalIds(recipe.definition);
  const written = named(filled(recipe, values), input.name);
  const definition = withIds(written, ids);
  const form = checkDefinitionForm(definition);
  const found = form.length > 0 ? form : definitionIssues(definition, written);
  if (found.length > 0)
    throw new InputError(
      found.slice(0, SHOWN).map((issue) => {
        const [parameter] = parametersAt(recipe.definition, issue.path);
        const path = parameter ? ['input', 'parameters', parameter] : ['input', 'recipe', 'definition', ...issue.path];
        return { ...issue, path };
      }),
    );
  return { recipe, definition, written, ids };
}

/** Names that take the place of others may be longer. @throws InputError if a part would be larger than it may be */
export function demandFits({ written }: RecipePlan, mapped: RecipeDefinition): void {
  const form = checkDefinitionForm(mapped);
  const found = form.length > 0 ? form : definitionIssues(mapped, written);
  if (found.length > 0)
    throw new InputError(found.slice(0, SHOWN).map((issue) => ({ ...issue, path: ['input', 'secrets'] })));
}

function refuse(at: string[], issues: readonly ConstraintIssue[]): void {
  if (issues.length === 0) return;
  throw new InputError(issues.slice(0, SHOWN).map((issue): InputIssue => ({ ...issue, path: [...at, ...issue.path] })));
}

function filled({ definition }: RecipeDocument, values: Parameters<typeof withParameters>[1]): RecipeDefinition {
  try {
    return withParameters(definition, values);
  } catch (error) {
    if (error instanceof TooLarge) throw invalidInput(['input', 'parameters'], error.message);
    throw error;
  }
}

function named(definition: RecipeDefinition, name: string | null | undefined): RecipeDefinition {
  if (!name) return definition;
  return { ...definition, app: { ...definition.app, name }, namespace: { ...definition.namespace, name } };
}

/** The parameters in the text at a place of a definition. */
function parametersAt(definition: RecipeDefinition, path: readonly (string | number)[]): Set<string> {
  let at: unknown = definition;
  for (const step of path)
    at = typeof at === 'object' && at !== null ? (at as Record<string | number, unknown>)[step] : undefined;
  return typeof at === 'string' ? parametersIn({ at }) : new Set();
}
