import { InputError, type InputIssue } from '../../kernel/errors.ts';
import type { RecipeDocument, RecipeParameter, RecipeRequirements } from '../recipes/recipe-document.ts';
import { parametersIn, parameterValues, withParameters } from '../recipes/recipe-parameters.ts';
import { planOf } from '../recipes/recipe-plan.ts';
import { requirementsOf } from '../recipes/recipe-requirements.ts';

/** The document as it is stored: what the service derives, and what is for editors, is no part of it. */
export function storedDocument(given: Record<string, unknown>): RecipeDocument {
  const { $schema: _schema, requirements: _derived, ...document } = given;
  // its form was checked with the input
  return document as unknown as RecipeDocument;
}

/** The bytes of a document, as JSON. */
export const bytesOf = (document: RecipeDocument): number => Buffer.byteLength(JSON.stringify(document));

/**
 * Checks a document whose form is right by what applying it would refuse. Nobody has chosen values of its parameters
 * yet: they have their defaults. What depends on a parameter without one is checked when it is applied.
 * @throws InputError with the places in `input.recipe`
 */
export function checkDocument(recipe: RecipeDocument): void {
  const open = recipe.parameters.filter((parameter) => !hasDefault(parameter));
  const parameters = Object.fromEntries(open.map((parameter) => [parameter.name, someValueOf(parameter)]));
  const isOpen = (name: unknown) => open.some((parameter) => parameter.name === name);
  try {
    planOf(recipe, { recipeId: recipe.id, parameters }, true);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const issues = error.issues.flatMap((issue) => {
      const [, place, name] = issue.path;
      if (place === 'parameters') return isOpen(name) ? [] : [atDefault(recipe, issue)];
      return [issue];
    });
    if (issues.length > 0) throw new InputError(issues);
  }
}

const hasDefault = (parameter: RecipeParameter): boolean => (parameter.default ?? null) !== null;

function someValueOf({ type, enum: choices, minimum, maximum }: RecipeParameter): string | number | boolean {
  if (type === 'string') return choices?.[0] ?? 'x';
  if (type === 'boolean') return false;
  return minimum ?? maximum ?? 1;
}

/** An issue of the value of a parameter is one of its default. */
function atDefault({ parameters }: RecipeDocument, issue: InputIssue): InputIssue {
  const [, , name, ...rest] = issue.path;
  const at = parameters.findIndex((parameter) => parameter.name === name);
  const path = ['input', 'recipe', 'parameters', ...(at < 0 ? [] : [at, 'default', ...rest])];
  return { ...issue, path };
}

/**
 * What a document uses and does not make, with the defaults of its parameters. What a parameter without a default names
 * is not known.
 */
export function requirementsIn({ definition, parameters }: RecipeDocument): RecipeRequirements {
  const { values } = parameterValues(parameters, {});
  const { tools, models, secrets } = requirementsOf(withParameters(definition, values));
  return { tools: tools.filter(isKnown), models: models.filter(isKnown), secrets: secrets.filter(isKnown) };
}

const isKnown = (name: string): boolean => parametersIn({ name }).size === 0;
