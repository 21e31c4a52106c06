import type { Command } from 'commander';
import { withExamples } from '../help.ts';
import { show, table } from '../output.ts';
import { type Choice, type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

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

interface Namespace {
  namespace_id: string;
  slug: string;
  name: string;
}

async function namespacesOf(bench: Workbench): Promise<Namespace[]> {
  const path = await bench.workspace();
  const found: Namespace[] = [];
  for await (const { namespace_id, slug, name } of bench.client.list(NAMESPACES, { path }))
    found.push({ namespace_id, slug, name });
  return found;
}

async function namespaces(bench: Workbench): Promise<void> {
  const found = await namespacesOf(bench);
  show(bench, found, () =>
    table(
      ['ID', 'SLUG', 'NAME'],
      found.map((one) => [one.namespace_id, one.slug, one.name]),
    ),
  );
}

async function createWorkspace(
  bench: Workbench,
  given: string | undefined,
  description: string | undefined,
): Promise<void> {
  bench.demand('org', { '<name>': given });
  const name = given ?? (await bench.ask('<name>', 'Name of the workspace'));
  const org_id = await bench.org();
  const body = { organization_id: org_id, name, ...(description !== undefined && { description }) };
  const { data } = await bench.client.rest.POST('/v1/orgs/{org_id}/workspaces', { params: { path: { org_id } }, body });
  show(bench, data, () =>
    [
      `Created the workspace ${data.name}: ${data.workspace_id}`,
      `To work in it: platform workspace use ${data.workspace_id}`,
    ].join('\n'),
  );
}

type Kind = 'org' | 'workspace' | 'namespace';

const nouns: Record<Kind, string> = { org: 'organization', workspace: 'workspace', namespace: 'namespace' };

/** Of a place of the profile, what is below it is no more: a workspace belongs to one organization. */
const below: Record<Kind, Partial<Record<Kind, undefined>>> = {
  org: { workspace: undefined, namespace: undefined },
  workspace: { namespace: undefined },
  namespace: {},
};

/** Uses a place from now on. An identifier is taken as it is. */
async function use(
  bench: Workbench,
  kind: Kind,
  given: string | undefined,
  choices: () => Promise<Choice[]>,
): Promise<void> {
  const isId = given !== undefined && /^(?:(?:org|ws|ns)_|default$)/.test(given);
  const id = isId ? given : await bench.find(given, { option: `<${kind}>`, noun: nouns[kind], choices });
  bench.remember({ ...below[kind], [kind]: id });
  show(bench, { [kind]: id }, () => `Using the ${nouns[kind]} ${id}.`);
}

/** Adds `org`, `workspace` and `namespace`. */
export function addPlaceCommands(program: Command, around: Surroundings): void {
  const org = program.command('org').description('organizations');
  withExamples(
    org
      .command('list')
      .description('list your organizations')
      .action(async (_options, command: Command) => {
        const bench = workbenchOf(command, around);
        showChoices(bench, 'org_id', await bench.organizations());
      }),
    'platform org list',
  );
  withExamples(
    org
      .command('use [org]')
      .description('use an organization from now on: its identifier or name')
      .action((given: string | undefined, _options, command: Command) => {
        const bench = workbenchOf(command, around);
        return use(bench, 'org', given, () => bench.organizations());
      }),
    'platform org use org_…',
  );

  const workspace = program.command('workspace').description('workspaces of the organization');
  withExamples(
    workspace
      .command('list')
      .description('list the workspaces that you may read')
      .action(async (_options, command: Command) => {
        const bench = workbenchOf(command, around);
        showChoices(bench, 'workspace_id', await bench.workspaces(await bench.org()));
      }),
    'platform workspace list',
  );
  withExamples(
    workspace
      .command('create [name]')
      .description('create a workspace')
      .option('--description <text>', 'what it is for')
      .action((name: string | undefined, options: { description?: string }, command: Command) =>
        createWorkspace(workbenchOf(command, around), name, options.description),
      ),
    'platform workspace create Research',
  );
  withExamples(
    workspace
      .command('use [workspace]')
      .description('use a workspace from now on: its identifier or name')
      .action((given: string | undefined, _options, command: Command) => {
        const bench = workbenchOf(command, around);
        return use(bench, 'workspace', given, async () => bench.workspaces(await bench.org()));
      }),
    'platform workspace use Research',
  );

  const namespace = program.command('namespace').description('namespaces of the workspace');
  withExamples(
    namespace
      .command('list')
      .description('list the namespaces')
      .action((_options, command: Command) => namespaces(workbenchOf(command, around))),
    'platform namespace list',
  );
  withExamples(
    namespace
      .command('use [namespace]')
      .description('use a namespace from now on: its identifier, slug or name')
      .action((given: string | undefined, _options, command: Command) => {
        const bench = workbenchOf(command, around);
        const choices = async () =>
          (await namespacesOf(bench)).map(({ namespace_id: value, name: label, slug }) => ({ value, label, slug }));
        return use(bench, 'namespace', given, choices);
      }),
    'platform namespace use default',
  );
}
