import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Budget } from '../../access/throttle.ts';
import type { ActivityRecorder } from '../../data/activity.ts';
import { findRow } from '../../data/find-row.ts';
import { noCache } from '../../data/request-cache.ts';
import { statement } from '../../data/writes.ts';
import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { isReadOnly } from '../../kernel/reading-actions.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import { type ConnectionCredentials, ConnectionUnusable } from '../connections/connection-credentials.ts';
import type { ServerRequest } from '../mcp-servers/server-calls.ts';
import { calledTool, isOfServer, refusalOf } from '../mcp-servers/tool-call.ts';
import { type ActionRequestParts, requestFor, UnusableAction } from './action-request.ts';
import { checkConfiguration, faultOf, fieldsOf } from './configuration.ts';
import type { ToolAction } from './effective-actions.ts';
import { SafePatterns } from './safe-pattern.ts';
import {
  asPlaceholder,
  demandCredentials,
  meaningOf,
  placedSecrets,
  type SentCredential,
  sentBy,
} from './sent-credential.ts';
import type { ToolInstance } from './tool-instance.reads.ts';
import type { ToolInstanceService } from './tool-instance.service.ts';
import { within } from './within.ts';

/** Limit of the whole call (defaults §4), unless the action has a shorter one. */
const TIMEOUT_MS = 10_000;
const TESTS_PER_MINUTE = 30;

/** What to try. */
export interface TestInput {
  /** The name of an action. Default: the first that only reads and has all that it needs. */
  action?: string | null;
  /** Values of its parameters. */
  parameters?: object | null;
  /** Prepares the request and sends nothing. */
  dryRun?: boolean | null;
}

/** How a test ended. */
export interface ToolTestResult {
  success: boolean;
  /** A sentence for people. */
  message: string;
  /** `code` for programs, and `action`, `method`, `host` and `status` as far as they are known. */
  details: Record<string, unknown>;
  /** Time of the call in milliseconds; 0 if none was made. */
  latencyMs: number;
}

interface TestDeps extends ServiceDeps {
  toolInstances: ToolInstanceService;
  credentials: Credentials;
  outbound: Outbound;
  connections: ConnectionCredentials;
  activity: ActivityRecorder;
}

/**
 * Tests of tool instances: a real call to the provider. Whatever goes wrong with the provider, the configuration or the
 * credentials is a result, never an error; nothing of the answer's body and no credential is in it.
 */
export class ToolInstanceTest {
  readonly #deps: TestDeps;
  readonly #byUser: Budget;

  constructor(deps: TestDeps) {
    this.#deps = deps;
    this.#byUser = deps.budgets.of('tool_tests', TESTS_PER_MINUTE, 60);
  }

  /** Tests an instance, and records how the test ended. @throws RESOURCE_NOT_FOUND, RATE_LIMIT_EXCEEDED */
  async run(caller: Caller, place: Checked<WorkspacePlace>, id: string, input: TestInput): Promise<ToolTestResult> {
    const result = await this.#run(caller, place, id, input);
    const { orgId, workspaceId } = place;
    const { success, details, latencyMs } = result;
    const { code, action, status } = details;
    this.#deps.activity.record(
      caller,
      {
        action: 'execute',
        resourceType: 'tool_instance',
        resourceId: id,
        orgId,
        workspaceId,
        metadata: { code, action, status, latency_ms: latencyMs },
      },
      { statusCode: caller.request.successStatus, success },
    );
    return result;
  }

  async #run(caller: Caller, place: Checked<WorkspacePlace>, id: string, input: TestInput): Promise<ToolTestResult> {
    const instance = await this.#deps.toolInstances.reads.get(noCache, place, id);
    await this.#byUser.demand(caller.principal.userId);
    if (!instance.isActive && !input.dryRun) return inactive();
    const tool = await findRow(this.#deps.sql, 'tools', { id: instance.toolId });
    if (!tool) throw new Error(`A foreign key says that the tool '${instance.toolId}' exists.`);
    if (tool.status === 'disabled' && !input.dryRun) return disabled();
    const details: Record<string, unknown> = {};
    const startedAt = performance.now();
    try {
      return await this.#tried(caller, instance, tool, input, details);
    } catch (error) {
      const latencyMs = details.host === undefined || input.dryRun ? 0 : Math.round(performance.now() - startedAt);
      return { success: false, ...failureOf(error, details), latencyMs };
    }
  }

  async #tried(
    caller: Caller,
    instance: ToolInstance,
    tool: ToolRow,
    input: TestInput,
    details: Record<string, unknown>,
  ): Promise<ToolTestResult> {
    const action = chosen(instance, input);
    details.action = action.name;
    if (action.requires_confirmation === true && !input.dryRun) throw unconfirmed(action);
    checkStored(tool, instance);
    const secrets = await this.#deps.credentials.open(this.#deps.sql, instance.orgId, { toolInstanceId: instance.id });
    const parts: ActionRequestParts = {
      action,
      parameters: parametersOf(action, instance, input.parameters ?? {}),
      configuration: instance.configuration,
      secrets: secrets ?? {},
      credentials: placedSecrets(tool, secrets ?? {}),
    };
    if (typeof action.url_template !== 'string') return nothingToCall(details);
    const send = ({ credentials, secrets: more }: SentCredential) => {
      const request = requestFor({ ...parts, credentials, secrets: { ...parts.secrets, ...more } });
      const host = request.shownHost ?? new URL(request.url).host;
      Object.assign(details, { method: request.method, host });
      return { request, host };
    };
    if (input.dryRun) {
      if (parts.credentials.length === 0) demandCredentials(tool, instance);
      const shown = instance.connectionStatus === 'connected' ? asPlaceholder(tool, action, '********') : null;
      send(parts.credentials.length === 0 && shown ? shown : { credentials: parts.credentials });
      return {
        success: true,
        message: 'The request is complete. It was not sent.',
        details: { code: 'dry_run', ...details },
        latencyMs: 0,
      };
    }
    const startedAt = performance.now();
    const answer = await this.#call(caller, instance, tool, parts, (sent) => send(sent).request);
    const latencyMs = Math.round(performance.now() - startedAt);
    await this.#count(instance);
    details.status = answer.status;
    return { ...outcomeOf(tool, action, answer, details), latencyMs };
  }

  /** Calls with what the instance keeps itself, or with its connection, or without credentials if it needs none. */
  async #call(
    caller: Caller,
    instance: ToolInstance,
    tool: ToolRow,
    parts: ActionRequestParts,
    requestWith: (sent: SentCredential) => ReturnType<typeof requestFor>,
  ): Promise<OutboundResponse> {
    const { orgId, id, namespaceId } = instance;
    const limit = timeLimitOf(parts.action);
    const endsAt = performance.now() + limit;
    const ask = async (sent: SentCredential): Promise<OutboundResponse> => {
      const request = { ...requestWith(sent), owner: orgId, traceId: caller.request.traceId };
      const send = (step: ServerRequest) => {
        const { url, owner, traceId } = request;
        const timeoutMs = Math.max(1, endsAt - performance.now());
        return this.#deps.outbound.request({ url, owner, traceId, ...step, timeoutMs });
      };
      return isOfServer(parts.action) ? calledTool(request, send) : send(request);
    };
    if (parts.credentials.length > 0) return ask({ credentials: parts.credentials });
    const called = this.#deps.connections.call({ orgId, toolInstanceId: id, namespaceId }, (credential) =>
      ask(sentBy(tool, parts.action, credential)),
    );
    const answer = await within(limit, called);
    if (answer) return answer;
    demandCredentials(tool, instance);
    return ask({ credentials: [] });
  }

  async #count({ orgId, id }: ToolInstance): Promise<void> {
    const { text, values } = statement`
      update tool_instances set usage_count = usage_count + 1, last_used_at = now()
      where org_id = ${orgId} and id = ${id}`;
    await this.#deps.sql.change(text, values);
  }
}

/** The action to try. @throws UnusableAction */
function chosen(
  { effectiveActionSchemas: actions }: ToolInstance,
  { action: name, parameters, dryRun }: TestInput,
): ToolAction {
  if (name) {
    const named = actions.find((action) => action.name === name);
    if (named) return named;
    throw new UnusableAction('schema_mismatch', `The instance has no action '${name}'.`);
  }
  const given = parameters ?? {};
  const isReady = (action: ToolAction) =>
    listOf(action.parameters).every(
      (parameter) =>
        parameter.required !== true || parameter.default !== undefined || Object.hasOwn(given, parameter.name),
    );
  const readOnly = actions.filter(isReadOnly);
  const free = readOnly.filter((action) => dryRun || action.requires_confirmation !== true);
  const first = free.find(isReady) ?? free[0] ?? readOnly[0];
  if (first) return first;
  throw new UnusableAction('schema_mismatch', 'The instance has no action that only reads: name the one to try.');
}

const timeLimitOf = ({ timeout_seconds: seconds }: ToolAction): number =>
  typeof seconds === 'number' && seconds > 0 ? Math.min(TIMEOUT_MS, seconds * 1_000) : TIMEOUT_MS;

const listOf = (value: unknown): ToolAction[] => (Array.isArray(value) ? (value as ToolAction[]) : []);

/** @throws UnusableAction if the stored configuration is not one that the tool, as it is now, accepts */
function checkStored(tool: ToolRow, { configuration }: ToolInstance): void {
  const { issues } = checkConfiguration(fieldsOf(tool), configuration, configuration, []);
  const names = [...new Set(issues.map(({ path }) => String(path[0])))];
  if (names.length > 0)
    throw new UnusableAction('schema_mismatch', `The configuration does not fit the tool: ${names.join(', ')}.`);
}

/** The parameters of a call with the defaults of the action. @throws UnusableAction */
function parametersOf(action: ToolAction, { configuration }: ToolInstance, given: object): Record<string, unknown> {
  const patterns = new SafePatterns();
  const values: Record<string, unknown> = {};
  for (const parameter of listOf(action.parameters)) {
    const { name, default: initial, required } = parameter;
    const value: unknown = Object.hasOwn(given, name) ? (given as Record<string, unknown>)[name] : initial;
    if (value === undefined || value === null) {
      if (required !== true || Object.hasOwn(configuration, name)) continue;
      throw new UnusableAction('schema_mismatch', `The action '${action.name}' needs the parameter '${name}'.`);
    }
    const { min_length, max_length, min_value, max_value, pattern, enum: listed } = parameter;
    const validation = { min_length, max_length, min_value, max_value, pattern, enum: listed };
    const fault = faultOf({ ...parameter, validation }, value, patterns);
    if (fault) throw new UnusableAction('schema_mismatch', `The parameter '${name}': ${fault.msg}.`);
    values[name] = value;
  }
  return values;
}

const inactive = (): ToolTestResult => ({
  success: false,
  message: 'The tool instance is inactive. Nothing was sent.',
  details: { code: 'inactive' },
  latencyMs: 0,
});

const disabled = (): ToolTestResult => ({
  success: false,
  message: 'The tool is disabled. Nothing was sent.',
  details: { code: 'tool_disabled' },
  latencyMs: 0,
});

/** Only an execution asks somebody. */
const unconfirmed = ({ name }: ToolAction) =>
  new UnusableAction(
    'schema_mismatch',
    `The action '${name}' needs a confirmation: execute it, or test it with 'dry_run'.`,
  );

const nothingToCall = (details: Record<string, unknown>): ToolTestResult => ({
  success: true,
  message: 'The action calls nothing outside. Its parameters are complete.',
  details: { code: 'nothing_to_call', ...details },
  latencyMs: 0,
});

type CallOutcome = Omit<ToolTestResult, 'latencyMs'>;

function outcomeOf(
  tool: ToolRow,
  action: ToolAction,
  answer: OutboundResponse,
  details: Record<string, unknown>,
): CallOutcome {
  const refusal = refusalOf(answer);
  if (refusal)
    return {
      success: false,
      message: `${tool.name} answered ${refusal.says}.`,
      details: { code: refusal.code, ...details },
    };
  if (!answer.isOk)
    return {
      success: false,
      message: `${tool.name} answered ${answer.status}: ${meaningOf(answer.status)}.`,
      details: { code: `http_${answer.status}`, ...details },
    };
  const wanted = (action.output_schema as { type?: unknown } | undefined)?.type;
  const path = action.response_result_path;
  const isJsonWanted = wanted === 'object' || wanted === 'array' || (typeof path === 'string' && path !== '');
  if (isJsonWanted && action.method !== 'HEAD' && answer.status !== 204 && !isJson(answer))
    return {
      success: false,
      message: `${tool.name} answered ${answer.status}, but not with the JSON that the action promises.`,
      details: { code: 'schema_mismatch', ...details },
    };
  return {
    success: true,
    message: `${tool.name} answered ${answer.status}.`,
    details: { code: 'ok', ...details },
  };
}

function isJson(answer: OutboundResponse): boolean {
  try {
    answer.json();
    return true;
  } catch (error) {
    if (OutboundError.in(error)) return false;
    throw error;
  }
}

/** Errors that say something to the caller; all others are bugs. */
function failureOf(error: unknown, details: Record<string, unknown>): Pick<ToolTestResult, 'message' | 'details'> {
  const outbound = OutboundError.in(error);
  const isTold = error instanceof UnusableAction || error instanceof ConnectionUnusable;
  const shown = outbound ?? (isTold ? error : null);
  if (!shown) throw error;
  return { message: shown.message, details: { code: shown.code, ...details } };
}
