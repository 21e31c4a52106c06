import type { Command } from 'commander';
import { withExamples } from '../help.ts';
import { show, table, tell } from '../output.ts';
import { type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

async function list(bench: Workbench): Promise<void> {
  const org_id = await bench.org();
  const { data } = await bench.client.rest.GET('/v1/orgs/{org_id}/recipes', { params: { path: { org_id } } });
  show(bench, data.recipes, () =>
    table(
      ['ID', 'NAME'],
      data.recipes.map(({ id, name }) => [id, name]),
    ),
  );
}

async function apply(bench: Workbench, recipe_id: string, name: string | undefined): Promise<void> {
  const { data } = await bench.client.rest.POST('/v1/orgs/{org_id}/workspaces/{workspace_id}/recipes/apply', {
    params: { path: await bench.workspace() },
    body: { recipe_id, ...(name !== undefined && { name }) },
  });
  show(bench, data, () => `${data.message}\nApp: ${data.app_id}`);
}

async function exported(bench: Workbench, app_id: string): Promise<void> {
  const { data } = await bench.client.rest.POST(
    '/v1/orgs/{org_id}/workspaces/{workspace_id}/apps/{app_id}/export-recipe',
    { params: { path: { ...(await bench.workspace()), app_id } } },
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
      .command('apply <recipe>')
      .description('make an app of a recipe')
      .option('--name <name>', 'name of the app')
      .action((id: string, options: { name?: string }, command: Command) =>
        apply(workbenchOf(command, around), id, options.name),
      ),
    'platform recipes apply starter-chat --name Support',
  );
  withExamples(
    recipes
      .command('export <app>')
      .description('write an app as a recipe, to stdout; warnings go to stderr')
      .action((id: string, _options, command: Command) => exported(workbenchOf(command, around), id)),
    'platform recipes export app_…',
  );
}
