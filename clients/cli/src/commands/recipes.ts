import type { Command } from 'commander';
import { withExamples } from '../help.ts';
import { show, table, tell, working } from '../output.ts';
import { type Choice, type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const WORKSPACE = '/v1/orgs/{org_id}/workspaces/{workspace_id}';

async function recipesOf(bench: Workbench) {
  const org_id = await bench.org();
  const { data } = await bench.client.rest.GET('/v1/orgs/{org_id}/recipes', { params: { path: { org_id } } });
  return data.recipes;
}

async function list(bench: Workbench): Promise<void> {
  const recipes = await recipesOf(bench);
  show(bench, recipes, () =>
    table(
      ['ID', 'NAME'],
      recipes.map(({ id, name }) => [id, name]),
    ),
  );
}

async function apply(bench: Workbench, given: string | undefined, name: string | undefined): Promise<void> {
  bench.demand('workspace', { '<recipe>': given });
  const choices = async () => (await recipesOf(bench)).map(({ id: value, name: label }) => ({ value, label }));
  const recipe_id = given ?? (await bench.choose({ option: '<recipe>', noun: 'recipe', choices }));
  const path = await bench.workspace();
  const begin = () =>
    bench.client.rest.POST(`${WORKSPACE}/recipes/apply`, {
      params: { path },
      body: { recipe_id, ...(name !== undefined && { name }) },
    });
  const { data } = await working(bench, 'Making the app', begin);
  show(bench, data, () => `${data.message}\nApp: ${data.app_id}`);
}

async function exported(bench: Workbench, given: string | undefined): Promise<void> {
  bench.demand('workspace', { '<app>': given });
  const place = await bench.workspace();
  const choices = async () => {
    const found: Choice[] = [];
    for await (const { app_id, name } of bench.client.list(`${WORKSPACE}/apps`, { path: place }))
      found.push({ value: app_id, label: name });
    return found;
  };
  const app_id = given ?? (await bench.choose({ option: '<app>', noun: 'app', choices }));
  const path = { ...place, app_id };
  const { data } = await working(bench, 'Writing the recipe', () =>
    bench.client.rest.POST(`${WORKSPACE}/apps/{app_id}/export-recipe`, { params: { path } }),
  );
  for (const warning of data.warnings) tell(bench, warning);
  show(bench, data.recipe, () => JSON.stringify(data.recipe, null, 2));
}

/** Adds `recipes`. */
export function addRecipeCommands(program: Command, around: Surroundings): void {
  const recipes = program.command('recipes').description('recipes: apps that are ready to use');
  withExamples(
    recipes
      .command('list')
      .description('list the recipes of the organization')
      .action((_options, command: Command) => list(workbenchOf(command, around))),
    'platform recipes list',
  );
  withExamples(
    recipes
      .command('apply [recipe]')
      .description('make an app of a recipe')
      .option('--name <name>', 'name of the app')
      .action((id: string | undefined, options: { name?: string }, command: Command) =>
        apply(workbenchOf(command, around), id, options.name),
      ),
    'platform recipes apply starter-chat --name Support',
  );
  withExamples(
    recipes
      .command('export [app]')
      .description('write an app as a recipe, to stdout; warnings go to stderr')
      .action((id: string | undefined, _options, command: Command) => exported(workbenchOf(command, around), id)),
    'platform recipes export app_…',
  );
}
