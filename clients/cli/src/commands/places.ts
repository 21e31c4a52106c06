import type { Command } from 'commander';
import { show, table } from '../output.ts';
import { type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const NAMESPACES = '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces';

const showChoices = (bench: Workbench, key: string, choices: { value: string; label: string }[]): void =>
  show(
    bench,
    choices.map(({ value, label }) => ({ [key]: value, name: label })),
    () =>
      table(
        ['ID', 'NAME'],
        choices.map(({ value, label }) => [value, label]),
      ),
  );

async function namespaces(bench: Workbench): Promise<void> {
  const path = await bench.workspace();
  const found: { namespace_id: string; slug: string; name: string }[] = [];
  for await (const { namespace_id, slug, name } of bench.client.list(NAMESPACES, { path }))
    found.push({ namespace_id, slug, name });
  show(bench, found, () =>
    table(
      ['ID', 'SLUG', 'NAME'],
      found.map((one) => [one.namespace_id, one.slug, one.name]),
    ),
  );
}

async function createWorkspace(bench: Workbench, name: string, description: string | undefined): Promise<void> {
  const org_id = await bench.org();
  const body = { organization_id: org_id, name, ...(description !== undefined && { description }) };
  const { data } = await bench.client.rest.POST('/v1/orgs/{org_id}/workspaces', { params: { path: { org_id } }, body });
  show(bench, data, () => `Created the workspace ${data.name}: ${data.workspace_id}`);
}

/** Adds `org`, `workspace` and `namespace`. */
export function addPlaceCommands(program: Command, around: Surroundings): void {
  const org = program.command('org').description('organizations');
  org
    .command('list')
    .description('list your organizations')
    .action(async (_options, command: Command) => {
      const bench = workbenchOf(command, around);
      showChoices(bench, 'org_id', await bench.organizations());
    });
  org
    .command('use <org>')
    .description('use an organization from now on')
    .action((id: string, _options, command: Command) => {
      const bench = workbenchOf(command, around);
      bench.remember({ org: id });
      show(bench, { org: id }, () => `Using the organization ${id}.`);
    });

  const workspace = program.command('workspace').description('workspaces of the organization');
  workspace
    .command('list')
    .description('list the workspaces that you may read')
    .action(async (_options, command: Command) => {
      const bench = workbenchOf(command, around);
      showChoices(bench, 'workspace_id', await bench.workspaces(await bench.org()));
    });
  workspace
    .command('create <name>')
    .description('create a workspace')
    .option('--description <text>')
    .action((name: string, options: { description?: string }, command: Command) =>
      createWorkspace(workbenchOf(command, around), name, options.description),
    );
  workspace
    .command('use <workspace>')
    .description('use a workspace from now on')
    .action((id: string, _options, command: Command) => {
      const bench = workbenchOf(command, around);
      bench.remember({ workspace: id });
      show(bench, { workspace: id }, () => `Using the workspace ${id}.`);
    });

  program
    .command('namespace')
    .description('namespaces of the workspace')
    .command('list')
    .description('list the namespaces')
    .action((_options, command: Command) => namespaces(workbenchOf(command, around)));
}
