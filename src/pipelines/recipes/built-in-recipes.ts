import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../../paths.ts';
import { wereChecked } from '../../platform/build-checks.ts';
import { recipeCategories } from './recipe.words.ts';
import { declarationIssues, definitionIssues } from './recipe-check.ts';
import type { RecipeDocument, RecipeRequirements } from './recipe-document.ts';
import { parametersIn, parameterValues, withParameters } from './recipe-parameters.ts';
import { requirementsOf } from './recipe-requirements.ts';
import { checkDefinitionForm, checkForm } from './recipe-schema.ts';

/** The folder of the data files: one recipe each, named by its id. */
export const builtInRecipesDir = path.join(projectRoot, 'src', 'pipelines', 'recipes', 'built-in');

/** A recipe of the catalogue. */
export interface Recipe extends RecipeDocument {
  /** With the defaults of its parameters. */
  requirements: RecipeRequirements;
}

/**
 * The recipes that come with the service, by category and then by name: the order of the catalogue.
 * @param wereRight whether files with this digest are known to have no mistake
 * @throws Error that names the file and the places of all mistakes, for a file that is no recipe
 */
export function readBuiltInRecipes(
  dir = builtInRecipesDir,
  wereRight: (digest: string) => boolean = (digest) => wereChecked('recipes', digest),
): Recipe[] {
  const files = readdirSync(dir)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => ({ file: path.join(dir, file), text: readFileSync(path.join(dir, file), 'utf8') }));
  const areKnown = wereRight(digestOf(files));
  const rank = ({ category }: Recipe) => recipeCategories.indexOf(category);
  return files
    .map((file) => readRecipe(file, areKnown))
    .sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
}

interface DataFile {
  file: string;
  text: string;
}

/** SHA-256 of the names and the texts, hexadecimal. */
function digestOf(files: readonly DataFile[]): string {
  const hash = createHash('sha256');
  for (const { file, text } of files) hash.update(`${path.basename(file)}\0${text}\0`);
  return hash.digest('hex');
}

function readRecipe({ file, text }: DataFile, isKnown: boolean): Recipe {
  const refuse = (reason: string): never => {
    throw new Error(`The recipe ${path.relative(projectRoot, file)} cannot be used. ${reason}`);
  };
  const value = parsed(text, refuse);
  const faults = isKnown ? [] : faultsOf(value);
  if (faults.length > 0) refuse(faults.join('; '));
  const recipe = value as RecipeDocument;
  if (path.basename(file) !== `${recipe.id}.json`) refuse(`Its id is '${recipe.id}': the file must have that name.`);
  return { ...recipe, requirements: requirementsOf(defaulted(recipe)) };
}

function parsed(text: string, refuse: (reason: string) => never): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

/** The definition as it is when no parameter is given. */
const defaulted = ({ parameters, definition }: RecipeDocument) =>
  withParameters(definition, parameterValues(parameters, {}).values);

/** What is wrong with a data file, one line each. */
export function faultsOf(value: unknown): string[] {
  const form = checkForm(value);
  if (form.length > 0) return linesOf([], form);
  const recipe = value as RecipeDocument;
  const { values, issues } = parameterValues(recipe.parameters, {});
  const faults = [
    ...linesOf(['parameters'], declarationIssues(recipe.parameters)),
    ...issues.map(({ path: [name] }) => `parameters: '${name}' has no default that fits`),
    ...[...parametersIn(recipe.definition)]
      .filter((name) => !recipe.parameters.some((parameter) => parameter.name === name))
      .map((name) => `definition: the parameter '${name}' is not declared`),
  ];
  if (faults.length > 0) return faults;
  const definition = withParameters(recipe.definition, values);
  const wrong = checkDefinitionForm(definition);
  return linesOf(['definition'], wrong.length > 0 ? wrong : definitionIssues(definition));
}

const linesOf = (at: string[], issues: readonly { path: (string | number)[]; msg: string }[]): string[] =>
  issues.map(({ path: place, msg }) => `${[...at, ...place].join('.')}: ${msg}`);
