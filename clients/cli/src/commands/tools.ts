import type { Command } from 'commander';
import type { components } from 'platform-management-client';
import { jsonOrText, valuesOf } from '../arguments.ts';
import { OutcomeError, UsageError } from '../failures.ts';
import { withExamples } from '../help.ts';
import { show, table, tell } from '../output.ts';
import { visible } from '../visible.ts';
import { type Choice, type Surroundings, type Workbench, workbenchOf } from '../workbench.ts';

const INSTANCES = '/v1/orgs/{org_id}/workspaces/{workspace_id}/tool-instances';
const INSTANCE = `${INSTANCES}/{instance_id}` as const;
const IN_NAMESPACE =
  '/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces/{namespace_id}/tool-instances/{instance_id}/execute';

type Result = components['schemas']['ToolActionResult'];
type Input = components['schemas']['ExecuteToolActionInput'];

async function list(bench: Workbench): Promise<void> {
  const found: { instance_id: string; name: string; tool: string; is_active: boolean; connection_status: string }[] =
    [];
  for await (const one of bench.client.list(INSTANCES, { path: await bench.workspace() }))
    found.push({
      instance_id: one.instance_id,
      name: one.name,
      tool: one.tool_slug,
      is_active: one.is_active,
      connection_status: one.connection_status,
    });
  show(bench, found, () =>
    table(
      ['ID', 'NAME', 'TOOL', 'ACTIVE', 'CONNECTION'],
      found.map((one) => [one.instance_id, one.name, one.tool, one.is_active, one.connection_status]),
    ),
  );
}

async function instanceOf(bench: Workbench, given: string | undefined): Promise<string> {
  const choices = async () => {
    const found: Choice[] = [];
    for await (const { instance_id: value, name: label } of bench.client.list(INSTANCES, {
      path: await bench.workspace(),
    }))
      found.push({ value, label });
    return found;
  };
  return bench.find(given, { option: '<instance>', noun: 'tool instance', choices });
}

/** An action as `tools actions` shows it. */
interface Action {
  name: string;
  method: string | null;
  description: string | null;
  parameters: { name: string; type: string | null; required: boolean }[];
  requires_confirmation: boolean;
}

const textOr = <Other>(value: unknown, other: Other): string | Other => (typeof value === 'string' ? value : other);

function actionOf(described: Record<string, unknown>): Action {
  const parameters = (described.parameters ?? []) as Record<string, unknown>[];
  return {
    name: textOr(described.name, ''),
    method: textOr(described.method, null),
    description: textOr(described.description, null),
    parameters: parameters.map(({ name, type, required }) => ({
      name: textOr(name, ''),
      type: textOr(type, null),
      required: required === true,
    })),
    requires_confirmation: described.requires_confirmation === true,
  };
}

async function actionsOf(bench: Workbench, instance_id: string): Promise<Action[]> {
  const path = { ...(await bench.workspace()), instance_id };
  const { data } = await bench.client.rest.GET(INSTANCE, { params: { path } });
  return data.effective_action_schemas.map(actionOf);
}

async function actions(bench: Workbench, given: string | undefined): Promise<void> {
  bench.demand('workspace', { '<instance>': given });
  const found = await actionsOf(bench, await instanceOf(bench, given));
  show(bench, found, () =>
    table(
      ['ACTION', 'METHOD', 'PARAMETERS', 'ASKS'],
      found.map((action) => [
        action.name,
        action.method,
        action.parameters.map(({ name, required }) => (required ? name : `[${name}]`)).join(' '),
        action.requires_confirmation ? 'yes' : '',
      ]),
    ),
  );
}

interface CallOptions {
  param: string[];
  data?: string;
  dryRun?: boolean;
  yes?: boolean;
}

async function call(
  bench: Workbench,
  instance: string | undefined,
  action: string | undefined,
  options: CallOptions,
): Promise<void> {
  bench.demand('workspace', { '<instance>': instance, '<action>': action });
  const parameters = parametersOf(options);
  const instance_id = await instanceOf(bench, instance);
  const choices = async () => (await actionsOf(bench, instance_id)).map(({ name }) => ({ value: name, label: name }));
  const name = action ?? (await bench.choose({ option: '<action>', noun: 'action', choices }));
  const input: Input = { action: name, parameters, ...(options.dryRun && { dry_run: true }) };
  let result = await execute(bench, instance_id, input);
  if (result.confirmation !== null && !options.dryRun) {
    if (!(await isConfirmed(bench, result, options.yes ?? false)))
      throw new OutcomeError('Nothing was sent.', { request: result.request });
    result = await execute(bench, instance_id, { ...input, confirmation: result.confirmation });
  }
  if (!result.success && !options.dryRun)
    throw new OutcomeError([result.message, result.excerpt].filter(Boolean).join('\n'), result);
  if (result.truncated) tell(bench, textOfCut(result.whole_result));
  show(bench, result, () => textOfResult(result));
}

/** With a namespace, its connection is used if it has one. */
async function execute(bench: Workbench, instance_id: string, body: Input): Promise<Result> {
  const { rest } = bench.client;
  if (bench.given('namespace')) {
    const path = { ...(await bench.namespace()), instance_id };
    return (await rest.POST(IN_NAMESPACE, { params: { path }, body })).data;
  }
  const path = { ...(await bench.workspace()), instance_id };
  return (await rest.POST(`${INSTANCE}/execute`, { params: { path }, body })).data;
}

/** Shows what would be sent, and asks. What is secret in it has a mask already. */
async function isConfirmed(bench: Workbench, { action, request }: Result, isYes: boolean): Promise<boolean> {
  if (isYes) return true;
  if (!bench.isJson && request)
    bench.around.stderr.write(`'${visible(action)}' would send:\n${textOfRequest(request)}\n`);
  const question = request ? `Send ${request.method} ${request.url}?` : `Run '${action}'?`;
  return bench.confirm(visible(question), { request });
}

/** Whoever answers a question sees all of it: nothing in it hides what stands above. */
const textOfRequest = ({ method, url, headers, body }: NonNullable<Result['request']>): string =>
  visible(
    [
      `${method} ${url}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      ...(body === null ? [] : ['', body]),
    ].join('\n'),
  );

/** Where the whole of a result that is cut can be fetched, or why nowhere. */
function textOfCut(whole: Result['whole_result']): string {
  if (!whole) return 'The result is too large, and is cut.';
  const { download_url: url, size_bytes: size, expires_at: end, not_kept: reason } = whole;
  return url
    ? `The result is cut. All ${size} bytes, until ${end}: ${url}`
    : `The result is cut. All ${size} bytes could not be kept: ${reason}.`;
}

function textOfResult({ request, format, result, message }: Result): string {
  if (request) return textOfRequest(request);
  if (format === 'none') return message;
  return typeof result === 'string' ? result : JSON.stringify(result, null, 2);
}

/** `--data` as a whole, then each `--param`. */
const parametersOf = ({ data, param }: CallOptions): Record<string, unknown> => ({
  ...(data !== undefined && objectIn(data)),
  ...valuesOf(param, 'parameter'),
});

function objectIn(text: string): Record<string, unknown> {
  const value = jsonOrText(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new UsageError('--data must be a JSON object.');
}

const collected = (value: string, before: string[]): string[] => [...before, value];

/** Adds `tools`. */
export function addToolCommands(program: Command, around: Surroundings): void {
  const tools = program.command('tools').description('tools of the workspace, and what they can do');
  withExamples(
    tools
      .command('list')
      .description('list the tool instances of the workspace')
      .action((_options, command: Command) => list(workbenchOf(command, around))),
    'platform tools list',
  );
  withExamples(
    tools
      .command('actions [instance]')
      .description('list the actions of a tool instance, which is named by its identifier or name')
      .action((instance: string | undefined, _options, command: Command) =>
        actions(workbenchOf(command, around), instance),
      ),
    'platform tools actions Tickets',
  );
  withExamples(
    tools
      .command('call [instance] [action]')
      .description('run an action; what may destroy something is shown first, and asked for')
      .option('--param <name=value>', 'a parameter; may be repeated', collected, [])
      .option('--data <json>', 'all parameters, as an object')
      .option('--dry-run', 'show what would be sent, and send nothing')
      .option('--yes', 'do not ask')
      .action((instance: string | undefined, action: string | undefined, options: CallOptions, command: Command) =>
        call(workbenchOf(command, around), instance, action, options),
      ),
    'platform tools call Tickets find --param query=printer',
    'platform tools call Tickets remove --param id=7 --yes',
  );
}
