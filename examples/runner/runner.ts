// Runs what the actions of an app start: follows the events of the workspace, does the steps, reports each execution.
// `npx tsx runner.ts URL ORG WORKSPACE APP`, with a token in PLATFORM_TOKEN. README.md says more.
import { randomUUID } from 'node:crypto';
import { argv, env } from 'node:process';
import { Client, type components, type ReceivedEvent } from 'platform-management-client';
import { type Json, runPipeline, type StepRunner } from './pipeline.ts';

type Report = Partial<components['schemas']['ReportExecutionInput']>;

export interface RunnerOptions {
  client: Client;
  /** The app whose actions are run, with the workspace that it is in. */
  place: { org_id: string; workspace_id: string; app_id: string };
  signal?: AbortSignal;
  /** Called when the events are followed: nothing is missed from then on. */
  onReady?: () => void;
  onEnd?: (execution_id: string, outcome: Json | Error) => void;
}

const WORKSPACE = '/v1/orgs/{org_id}/workspaces/{workspace_id}';
const APP = `${WORKSPACE}/apps/{app_id}` as const;
/** What begins the traces of all runs, of this runner and others. An event has the trace of what caused it. */
const RUN_TRACE = 'pipeline-run.';
const BASE_URL = 'query ($orgId: ID!, $id: ID!) { providerAccount(orgId: $orgId, id: $id) { baseUrl } }';

/** Headers of what a run sends: the service gives its trace to the events of it. */
type Traced = Readonly<Record<'x-trace-id', string>>;

interface Action {
  action_id: string;
  augmentation_id: string;
  kind: string;
  enabled: boolean;
  trigger_event: string | null;
  input: Json;
}

/** Follows the events until the signal aborts, and runs what they start, one run after the other. */
export async function follow({ client, place, signal, onReady, onEnd }: RunnerOptions): Promise<void> {
  const runner = new AppRunner(client, place);
  try {
    for await (const received of client.events(place, { ...(signal && { signal }) })) {
      if (received.event.type === 'connected') onReady?.();
      for (const action of await runner.startedBy(received)) {
        // the same event gives the same id: a runner that begins anew goes on with the same execution
        const execution_id = `${action.action_id}-${received.id}`;
        onEnd?.(execution_id, await runner.run(execution_id, action));
      }
    }
  } catch (error) {
    if (!signal?.aborted) throw error;
  }
}

class AppRunner {
  readonly #client: Client;
  readonly #place: RunnerOptions['place'];
  #actions: Promise<Action[]> | undefined;

  constructor(client: Client, place: RunnerOptions['place']) {
    this.#client = client;
    this.#place = place;
  }

  /** The actions that an event starts: by the clock, or as their trigger. */
  async startedBy({ event: { type, resource_id, trace_id } }: ReceivedEvent): Promise<Action[]> {
    if (/^action\.(?:created|updated|deleted)$/.test(type)) this.#actions = undefined;
    // what a run does starts no other one: they would start each other without end
    if (trace_id?.startsWith(RUN_TRACE)) return [];
    this.#actions ??= this.#readActions();
    return (await this.#actions).filter((action) => {
      if (!action.enabled) return false;
      if (type === 'action.fired') return action.action_id === resource_id;
      return action.kind === 'trigger' && isMeant(action.trigger_event, type);
    });
  }

  async #readActions(): Promise<Action[]> {
    const found: Action[] = [];
    for await (const action of this.#client.list(`${APP}/actions`, { path: this.#place })) found.push(action);
    return found;
  }

  /** Runs the pipeline of an action, and reports it from its beginning to its end. */
  async run(execution_id: string, { action_id, augmentation_id, input }: Action): Promise<Json | Error> {
    const { app_id } = this.#place;
    const headers = { 'x-trace-id': `${RUN_TRACE}${randomUUID()}` };
    const used = { input: 0, output: 0 };
    const report = (more: Report) =>
      this.#client.rest.POST(`${WORKSPACE}/executions`, {
        params: { path: this.#place },
        headers,
        body: { execution_id, app_id, augmentation_id, action_id, token_usage: used, ...more },
      });
    try {
      const { data: pipeline } = await this.#client.rest.GET(`${APP}/augmentations/{augmentation_id}`, {
        params: { path: { ...this.#place, augmentation_id } },
      });
      await report({ status: 'running', stages_completed: 0 });
      const runners = { llm: this.#model(used, headers), tool: this.#tool(headers) };
      const onStage = async (completed: number) => void (await report({ stages_completed: completed }));
      const answer = await runPipeline(pipeline, input, { runners, onStage });
      await report({ status: 'completed' });
      return answer;
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      await report({ status: 'failed', error: failure.message });
      return failure;
    }
  }

  /** Asks the targets of a model, one after the other, until one answers. */
  #model(used: { input: number; output: number }, headers: Traced): StepRunner {
    return async ({ logical_model_id }, config) => {
      if (!logical_model_id) throw new Error('The step names no model.');
      const path = { ...this.#place, logical_model_id };
      const query = { purpose: 'chat', step_type: 'llm' };
      const { data } = await this.#client.rest.GET(`${WORKSPACE}/models/{logical_model_id}/route`, {
        params: { path, query },
      });
      let failure = data.refusal?.message ?? 'The model has no target.';
      for (const { provider_account_id, model_name } of data.targets) {
        const answer = await this.#ask(provider_account_id, model_name, config);
        const { text, input_tokens, output_tokens } = answer;
        const outcome = text === null ? ('failure' as const) : ('success' as const);
        const body = { provider_account_id, model_name, outcome, input_tokens, output_tokens };
        await this.#client.rest.POST(`${WORKSPACE}/models/{logical_model_id}/usage`, {
          params: { path },
          headers,
          body,
        });
        used.input += input_tokens;
        used.output += output_tokens;
        if (text !== null) return { text };
        failure = answer.failure;
      }
      throw new Error(failure);
    };
  }

  /** Asks an account whose API is that of OpenAI, as most model servers have it. */
  async #ask(accountId: string, model: string, { system_prompt, prompt }: Json) {
    const variables = { orgId: this.#place.org_id, id: accountId };
    const { providerAccount } = await this.#client.query<{ providerAccount: { baseUrl: string | null } }, object>(
      BASE_URL,
      variables,
    );
    const messages = [
      ...(system_prompt === undefined ? [] : [{ role: 'system', content: system_prompt }]),
      { role: 'user', content: prompt },
    ];
    const none = { text: null, input_tokens: 0, output_tokens: 0 };
    const response = await fetch(`${providerAccount.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages }),
    }).catch((error: Error) => error);
    if (response instanceof Error) return { ...none, failure: `The model cannot be reached: ${response.message}` };
    if (!response.ok) return { ...none, failure: `The model answered ${response.status}.` };
    const { choices, usage } = (await response.json()) as {
      choices: { message: { content: string } }[];
      usage?: { prompt_tokens: number; completion_tokens: number };
    };
    return {
      text: choices[0]?.message.content ?? '',
      input_tokens: usage?.prompt_tokens ?? 0,
      output_tokens: usage?.completion_tokens ?? 0,
      failure: '',
    };
  }

  /** Calls an action of a tool. The service has the credentials; this runner never sees them. */
  #tool(headers: Traced): StepRunner {
    return async ({ tool_instance_id, action }, { parameters }) => {
      if (!tool_instance_id || !action) throw new Error('The step lacks its tool instance, or its action.');
      const { data } = await this.#client.rest.POST(`${WORKSPACE}/tool-instances/{instance_id}/execute`, {
        params: { path: { ...this.#place, instance_id: tool_instance_id } },
        headers,
        body: { action, parameters: (parameters ?? {}) as Json },
      });
      if (!data.success) throw new Error(`${action}: ${data.message}`);
      return { result: data.result };
    };
  }
}

/** `secret.*` stands for all events of a resource. */
const isMeant = (wanted: string | null, type: string): boolean =>
  wanted?.endsWith('.*') ? type.startsWith(wanted.slice(0, -1)) : type === wanted;

if (argv[1] === import.meta.filename) {
  const [, , url = '', org_id = '', workspace_id = '', app_id = ''] = argv;
  await follow({
    client: new Client({ url, credentials: env.PLATFORM_TOKEN ?? '' }),
    place: { org_id, workspace_id, app_id },
    onReady: () => console.log('Ready.'),
    onEnd: (id, outcome) => console.log(id, outcome instanceof Error ? outcome.message : JSON.stringify(outcome)),
  });
}
