import type { Command } from 'commander';
import { ConflictError } from 'platform-management-client';
import { DeployedDocument, type DeployedQuery } from 'platform-management-client/documents';
import { withExamples } from '../help.ts';
import { show, table } from '../output.ts';
import { followed, type WaitOptions, withWait } from '../wait.ts';
import { type Choice, type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const WORKSPACE = '/v1/orgs/{org_id}/workspaces/{workspace_id}';
const ENVIRONMENT = `${WORKSPACE}/environments/{environment_id}` as const;

type Place = Awaited<ReturnType<Workbench['workspace']>>;

interface Environment {
  environment_id: string;
  slug: string;
  name: string;
  status: string;
}

async function environmentsOf(bench: Workbench, path: Place): Promise<Environment[]> {
  const found: Environment[] = [];
  for await (const { environment_id, slug, name, status } of bench.client.list(`${WORKSPACE}/environments`, { path }))
    found.push({ environment_id, slug, name, status });
  return found;
}

async function list(bench: Workbench): Promise<void> {
  const found = await environmentsOf(bench, await bench.workspace());
  show(bench, found, () =>
    table(
      ['ID', 'SLUG', 'NAME', 'STATUS'],
      found.map((one) => [one.environment_id, one.slug, one.name, one.status]),
    ),
  );
}

/** Finds what a command names: environments by slug, apps by name, releases by version, all by identifier. */
class Finder {
  readonly #bench: Workbench;
  readonly #place: Place;
  #environments: Promise<Environment[]> | undefined;

  constructor(bench: Workbench, place: Place) {
    this.#bench = bench;
    this.#place = place;
  }

  async environment(given: string | undefined, option: string): Promise<string> {
    const choices = async (): Promise<Choice[]> => {
      this.#environments ??= environmentsOf(this.#bench, this.#place);
      return (await this.#environments).map(({ environment_id: value, name: label, slug }) => ({ value, label, slug }));
    };
    return this.#bench.find(given, { option, noun: 'environment', choices });
  }

  async app(given: string | undefined): Promise<string> {
    const choices = async () => {
      const found: Choice[] = [];
      for await (const { app_id: value, name: label } of this.#bench.client.list(`${WORKSPACE}/apps`, {
        path: this.#place,
      }))
        found.push({ value, label });
      return found;
    };
    return this.#bench.find(given, { option: '--app', noun: 'app', choices });
  }

  async release(app_id: string, given: string | undefined): Promise<string> {
    const choices = async () => {
      const found: Choice[] = [];
      const path = { ...this.#place, app_id };
      for await (const { release_id: value, version: label } of this.#bench.client.list(
        `${WORKSPACE}/apps/{app_id}/releases`,
        { path },
      ))
        found.push({ value, label });
      return found;
    };
    return this.#bench.find(given, { option: '--release', noun: 'release', choices });
  }
}

interface Deployed {
  release_id: string;
  version: string | null;
}

interface InEnvironment {
  environment: { environment_id: string; slug: string };
  apps: Map<string, Deployed & { name: string | null }>;
}

/** What is deployed in an environment now, by app. */
async function deployedIn(bench: Workbench, { org_id, workspace_id }: Place, id: string): Promise<InEnvironment> {
  const variables = { orgId: org_id, workspaceId: workspace_id, id };
  const apps: InEnvironment['apps'] = new Map();
  for (let after: string | null = null; ; ) {
    const answer: DeployedQuery = await bench.client.query(DeployedDocument, { ...variables, after });
    const { slug, deployed } = answer.environment;
    for (const { appId, app, releaseId, release } of deployed.nodes)
      apps.set(appId, { name: app?.name ?? null, release_id: releaseId, version: release?.version ?? null });
    if (!deployed.pageInfo.hasNextPage) return { environment: { environment_id: id, slug }, apps };
    after = deployed.pageInfo.endCursor ?? null;
  }
}

async function compare(bench: Workbench, from: string | undefined, to: string | undefined): Promise<void> {
  bench.demand('workspace', { '<from>': from, '<to>': to });
  const place = await bench.workspace();
  const finder = new Finder(bench, place);
  const [left, right] = [
    await deployedIn(bench, place, await finder.environment(from, '<from>')),
    await deployedIn(bench, place, await finder.environment(to, '<to>')),
  ];
  const ids = [...new Set([...left.apps.keys(), ...right.apps.keys()])];
  const releaseOf = (found: (Deployed & { name: string | null }) | undefined): Deployed | null =>
    found ? { release_id: found.release_id, version: found.version } : null;
  const apps = ids.map((app_id) => {
    const [one, other] = [left.apps.get(app_id), right.apps.get(app_id)];
    const is_same = one?.release_id === other?.release_id;
    return { app_id, name: one?.name ?? other?.name ?? null, from: releaseOf(one), to: releaseOf(other), is_same };
  });
  const shown = (release: Deployed | null) => release && (release.version ?? release.release_id);
  show(bench, { from: left.environment, to: right.environment, apps }, () =>
    table(
      ['APP', left.environment.slug, right.environment.slug, ''],
      apps.map((app) => [app.name ?? app.app_id, shown(app.from), shown(app.to), app.is_same ? 'same' : 'differs']),
    ),
  );
}

interface Deployment {
  message: string;
  deployment_id: string;
  environment_id: string;
  app_id: string;
  release_id: string;
}

const ENDS = new Set(['deployment.created', 'deployment.rolled_back']);

/** Deploys, and waits if that was asked for until everybody who follows the workspace has the event of it. */
async function deployment(
  bench: Workbench,
  begin: () => Promise<Deployment>,
  { wait, waitSeconds }: WaitOptions,
): Promise<void> {
  const isEnd = ({ type, resource_id }: { type: string; resource_id: string | null }, { deployment_id }: Deployment) =>
    ENDS.has(type) && resource_id === deployment_id;
  const done = wait
    ? (await followed(bench, { what: 'Waiting for the deployment', begin, isEnd }, waitSeconds)).begun
    : await begin();
  show(bench, done, () => `${done.message}: ${done.deployment_id}`);
}

interface DeployOptions extends WaitOptions {
  env?: string;
  app?: string;
  release?: string;
}

async function deploy(bench: Workbench, options: DeployOptions): Promise<void> {
  const { env, app, release } = options;
  bench.demand('workspace', { '--env': env, '--app': app, '--release': release });
  const place = await bench.workspace();
  const finder = new Finder(bench, place);
  const environment_id = await finder.environment(env, '--env');
  const app_id = await finder.app(app);
  const release_id = await finder.release(app_id, release);
  await deployment(bench, () => deployRelease(bench, { ...place, environment_id }, { app_id, release_id }), options);
}

async function deployRelease(
  bench: Workbench,
  path: Place & { environment_id: string },
  body: { app_id: string; release_id: string },
): Promise<Deployment> {
  return (await bench.client.rest.POST(`${ENVIRONMENT}/deploy`, { params: { path }, body })).data;
}

interface PromoteOptions extends WaitOptions {
  from?: string;
  to?: string;
  app?: string;
}

async function promote(bench: Workbench, options: PromoteOptions): Promise<void> {
  const { from, to, app } = options;
  bench.demand('workspace', { '--from': from, '--to': to, '--app': app });
  const place = await bench.workspace();
  const finder = new Finder(bench, place);
  const body = {
    from_environment_id: await finder.environment(from, '--from'),
    app_id: await finder.app(app),
  };
  const path = { ...place, environment_id: await finder.environment(to, '--to') };
  const begin = async () => (await bench.client.rest.POST(`${ENVIRONMENT}/promote`, { params: { path }, body })).data;
  await deployment(bench, begin, options);
}

async function rollback(bench: Workbench, options: DeployOptions): Promise<void> {
  const { env, app, release } = options;
  bench.demand('workspace', { '--env': env, '--app': app });
  const place = await bench.workspace();
  const finder = new Finder(bench, place);
  const path = { ...place, environment_id: await finder.environment(env, '--env') };
  const app_id = await finder.app(app);
  const release_id =
    release === undefined ? await releaseBefore(bench, path, app_id) : await finder.release(app_id, release);
  await deployment(bench, () => deployRelease(bench, path, { app_id, release_id }), options);
}

/** The release that was deployed before the one that is deployed now. @throws ConflictError if there is none */
async function releaseBefore(
  bench: Workbench,
  path: Place & { environment_id: string },
  app_id: string,
): Promise<string> {
  let now: string | undefined;
  for await (const record of bench.client.list(`${ENVIRONMENT}/history`, { path, query: { app_id } })) {
    if (now === undefined) {
      if (record.action === 'undeploy') break;
      now = record.release_id;
    } else if (record.release_id !== now) return record.release_id;
  }
  throw new ConflictError({
    status: 409,
    code: 'RESOURCE_CONFLICT',
    message:
      now === undefined ? 'Nothing of the app is deployed there.' : 'No other release was deployed there before.',
  });
}

const UNTIL = 'everybody who follows the workspace knows of the deployment';

/** Adds `env`. */
export function addEnvironmentCommands(program: Command, around: Surroundings): void {
  const environments = program.command('env').description('environments of the workspace, and what is deployed there');
  withExamples(
    environments
      .command('list')
      .description('list environments')
      .action((_options, command: Command) => list(workbenchOf(command, around))),
    'platform env list',
  );
  withExamples(
    environments
      .command('compare [from] [to]')
      .description('show side by side what is deployed in two environments: identifiers or slugs')
      .action((from: string | undefined, to: string | undefined, _options, command: Command) =>
        compare(workbenchOf(command, around), from, to),
      ),
    'platform env compare staging production',
  );
  withExamples(
    withWait(
      environments
        .command('deploy')
        .description('deploy a release of an app')
        .option('--env <environment>', 'identifier or slug')
        .option('--app <app>', 'identifier or name')
        .option('--release <release>', 'identifier or version')
        .action((options: DeployOptions, command: Command) => deploy(workbenchOf(command, around), options)),
      UNTIL,
    ),
    'platform env deploy --env staging --app Shop --release 1.1.0 --wait',
  );
  withExamples(
    withWait(
      environments
        .command('promote')
        .description('deploy the release of an app that is deployed in another environment')
        .option('--from <environment>', 'identifier or slug')
        .option('--to <environment>', 'identifier or slug')
        .option('--app <app>', 'identifier or name')
        .action((options: PromoteOptions, command: Command) => promote(workbenchOf(command, around), options)),
      UNTIL,
    ),
    'platform env promote --from staging --to production --app Shop',
  );
  withExamples(
    withWait(
      environments
        .command('rollback')
        .description('deploy the release again that was deployed before the present one')
        .option('--env <environment>', 'identifier or slug')
        .option('--app <app>', 'identifier or name')
        .option('--release <release>', 'another one: identifier or version')
        .action((options: DeployOptions, command: Command) => rollback(workbenchOf(command, around), options)),
      UNTIL,
    ),
    'platform env rollback --env staging --app Shop',
  );
}
