import type { Command } from 'commander';
import type { WorkspaceEvent } from 'platform-management-client';
import { countOf } from '../arguments.ts';
import { withExamples } from '../help.ts';
import { show, table, tell } from '../output.ts';
import { type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const lineOf = ({ timestamp, type, actor, resource_id }: WorkspaceEvent): string =>
  [timestamp, type, actor.username ?? actor.principal_type, resource_id ?? ''].join('  ').trimEnd();

interface TailOptions {
  types?: string[];
  count?: number;
  after?: string;
}

async function tail(bench: Workbench, { types, count, after }: TailOptions): Promise<void> {
  const stop = new AbortController();
  const stopped = () => stop.abort();
  process.once('SIGINT', stopped);
  let left = count ?? Number.POSITIVE_INFINITY;
  const options = { signal: stop.signal, ...(after !== undefined && { after }) };
  try {
    for await (const { id, event } of bench.client.events(await bench.workspace(), options)) {
      // who looks on knows from when on nothing is missed, and how to end it
      if (event.type === 'connected' && bench.isInteractive)
        tell(bench, 'Following the events of the workspace. Ctrl+C ends it.');
      if (types && !types.some((wanted) => matches(wanted, event.type))) continue;
      show(bench, { id, ...event }, () => lineOf(event));
      if (--left <= 0) return;
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    process.off('SIGINT', stopped);
  }
}

/** `artifact.*` stands for all events of a resource. */
const matches = (wanted: string, type: string): boolean =>
  wanted.endsWith('.*') ? type.startsWith(wanted.slice(0, -1)) : type === wanted;

async function activity(bench: Workbench, limit: number): Promise<void> {
  const { data } = await bench.client.rest.GET('/v1/orgs/{org_id}/workspaces/{workspace_id}/activity', {
    params: { path: await bench.workspace(), query: { limit } },
  });
  const head = ['TIME', 'ACTION', 'RESOURCE', 'ID', 'SUCCESS'];
  show(bench, data.activities, () =>
    table(
      head,
      data.activities.map((one) => [one.timestamp, one.action, one.resource_type, one.resource_id, one.success]),
    ),
  );
}

/** Adds `events` and `activity`. */
export function addWatchCommands(program: Command, around: Surroundings): void {
  withExamples(
    program
      .command('events')
      .description('live events of the workspace; those of the organization, such as its secrets, are not among them')
      .command('tail')
      .description('follow the events of the workspace; goes on by itself after a broken connection')
      .option('--types <type...>', 'only these types; artifact.* stands for all of a resource')
      .option('--count <n>', 'end after so many events', countOf)
      .option('--after <id>', 'go on after the event with this id')
      .action((options: TailOptions, command: Command) => tail(workbenchOf(command, around), options)),
    'platform events tail --types "deployment.*" --count 1',
  );
  withExamples(
    program
      .command('activity')
      .description('what was done in the workspace, newest first')
      .option('--limit <n>', 'number of records', countOf, 20)
      .action((options: { limit: number }, command: Command) => activity(workbenchOf(command, around), options.limit)),
    'platform activity --limit 5',
  );
}
