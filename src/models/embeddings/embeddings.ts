import type { ActivityRecorder } from '../../data/activity.ts';
import type { Sql } from '../../data/sql.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import type { WorkspacePlace } from '../../kernel/checked-place.ts';
import {
  EMBEDDING_PURPOSE,
  type Embedder,
  type EmbeddingOptions,
  EmbeddingUnavailable,
  type OpenEmbedding,
  type Vector,
} from '../../kernel/embedding.ts';
import { ApiError } from '../../kernel/errors.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { OutboundResponse } from '../../platform/outbound/outbound-response.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { routingOrder } from '../models/model-routing.order.ts';
import { type RoutedModel, type RoutedTarget, readRoutedModels } from '../models/model-routing.reads.ts';
import {
  entitlementFinding,
  judgeTarget,
  modelFinding,
  nothingLeft,
  type RouteFinding,
  type RouteRequest,
} from '../models/model-routing.rules.ts';
import type { ModelUsageService } from '../models/model-usage.service.ts';
import type { RequestOutcome } from '../provider-accounts/provider-account.health.ts';
import { retryAfterOf, tokensOf, vectorsIn } from './embedding-answer.ts';

/** What kind of model embeds, and at which accounts the service asks for it itself. */
export const EMBEDDING = 'embedding';
const PROVIDER = 'openai_compatible';
/** A reference of an account that needs no credentials. */
const NO_CREDENTIALS = 'none';
/** Targets that one request is sent to until one answers. */
const MOST_TARGETS = 3;
/** Of 64 texts and 4,096 components each. */
const MOST_BYTES = 8 * 1024 * 1024;
/** How long what a secret says is not asked for again. */
const SECRET_RETRY_SECONDS = 300;
const TASK = 'embed_texts';

interface EmbeddingDeps {
  sql: Sql;
  activity: Pick<ActivityRecorder, 'recordNow'>;
  vault: Pick<Vault, 'open'>;
  outbound: Pick<Outbound, 'request'>;
  usage: Pick<ModelUsageService, 'reportOwn'>;
}

/** One request to a model, for a workspace. */
interface Asking {
  place: WorkspacePlace;
  modelId: string;
  targets: readonly RoutedTarget[];
  caller: AnyCaller;
  timeoutMs: number;
}

/** A request that was sent and gave no vectors: another target may. */
class TargetFailed extends EmbeddingUnavailable {}

/**
 * Embeds texts with the models of the catalogue, for the workspaces that are entitled to them: OpenAI's `/embeddings`
 * at the `base_url` of accounts of the type `openai_compatible`. Health, limits and usage are those of routes and
 * reports. Fallback chains are not followed, as vectors of two models do not compare; of the targets of a model only
 * those with the name of the first one are asked.
 */
export class Embeddings implements Embedder {
  readonly #deps: EmbeddingDeps;

  constructor(deps: EmbeddingDeps) {
    this.#deps = deps;
  }

  async nameOf(place: WorkspacePlace, modelId: string): Promise<string | null> {
    const model = (await readRoutedModels(this.#deps.sql, place, [modelId])).get(modelId);
    return model?.modelType === EMBEDDING ? servedName(model) : null;
  }

  async open(place: WorkspacePlace, modelId: string, { timeoutMs, traceId }: EmbeddingOptions): Promise<OpenEmbedding> {
    const model = (await readRoutedModels(this.#deps.sql, place, [modelId])).get(modelId);
    if (!model) throw unavailable(`The organization has no model '${modelId}'.`);
    if (model.modelType !== EMBEDDING) throw unavailable(`The model '${modelId}' does not embed texts.`);
    const targets = targetsOf(model, servedName(model));
    const { modelName } = targets[0]!;
    const caller = systemCaller(TASK);
    if (traceId !== undefined) caller.request.traceId = traceId;
    if (model.constraints.requireAuditLog)
      await this.#deps.activity.recordNow(
        caller,
        {
          action: 'read',
          resourceType: 'model',
          resourceId: modelId,
          orgId: place.orgId,
          workspaceId: place.workspaceId,
          metadata: { purpose: EMBEDDING_PURPOSE, model_name: modelName },
        },
        targets,
      );
    return { modelName, embed: (texts) => this.#embed({ place, modelId, targets, caller, timeoutMs }, texts) };
  }

  async #embed(asking: Asking, texts: readonly string[]): Promise<readonly Vector[]> {
    const endsAt = performance.now() + asking.timeoutMs;
    let failure: TargetFailed | null = null;
    for (const target of asking.targets.slice(0, MOST_TARGETS)) {
      const timeoutMs = Math.floor(endsAt - performance.now());
      if (timeoutMs <= 0) break;
      try {
        return await this.#ask({ ...asking, timeoutMs }, target, texts);
      } catch (error) {
        if (!(error instanceof TargetFailed)) throw error;
        failure = error;
      }
    }
    throw failure ?? new EmbeddingUnavailable('The provider did not answer in time.');
  }

  async #ask(asking: Asking, target: RoutedTarget, texts: readonly string[]): Promise<readonly Vector[]> {
    const { place, caller, timeoutMs } = asking;
    const url = endpointOf(target);
    const headers = await this.#headersFor(asking, target);
    const startedAt = performance.now();
    let answer: OutboundResponse;
    try {
      answer = await this.#deps.outbound.request({
        method: 'POST',
        url,
        headers,
        body: JSON.stringify({ model: target.modelName, input: texts, encoding_format: 'float' }),
        owner: place.orgId,
        traceId: caller.request.traceId,
        timeoutMs,
        maxBytes: MOST_BYTES,
        redirect: 'error',
      });
    } catch (error) {
      if (!(error instanceof OutboundError)) throw error;
      if (error.isRefusal) throw unavailable(error.message);
      // neither says anything about the target
      if (error.code !== 'busy' && error.code !== 'aborted')
        await this.#report(asking, target, error.code === 'timeout' ? 'TIMEOUT' : 'FAILURE', 0, startedAt);
      throw new TargetFailed(error.message);
    }
    const body = answer.isOk ? jsonOf(answer) : null;
    const vectors = vectorsIn(body, texts.length);
    const outcome = outcomeOf(answer.status, vectors !== null);
    await this.#report(asking, target, outcome, answer.isOk ? tokensOf(body, texts) : 0, startedAt);
    if (vectors) return vectors;
    throw failureOf(answer, outcome);
  }

  async #headersFor({ place, caller }: Asking, target: RoutedTarget): Promise<Record<string, string>> {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    if (target.credentialsRef === NO_CREDENTIALS) return headers;
    const unusable = 'The credentials of the provider account cannot be used.';
    try {
      const key = keyOf(await this.#deps.vault.open(caller, place.orgId, target.credentialsRef));
      if (key !== null) return { ...headers, authorization: `Bearer ${key}` };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
    // a secret is repaired without anybody telling
    throw new EmbeddingUnavailable(unusable, { retryAfterSeconds: SECRET_RETRY_SECONDS });
  }

  async #report(
    { place, modelId, caller }: Asking,
    { providerAccountId, modelName }: RoutedTarget,
    outcome: RequestOutcome,
    inputTokens: number,
    startedAt: number,
  ): Promise<void> {
    const latencyMs = Math.round(performance.now() - startedAt);
    const report = { providerAccountId, modelName, outcome, inputTokens, latencyMs, purpose: EMBEDDING_PURPOSE };
    await this.#deps.usage.reportOwn(caller, place, modelId, report);
  }
}

const unavailable = (message: string) => new EmbeddingUnavailable(message, { isFinal: true });

const unavailableFor = ({ message, retryAfterSeconds }: RouteFinding) =>
  new EmbeddingUnavailable(message, { isFinal: retryAfterSeconds === null, retryAfterSeconds });

const isAsked = ({ enabled, providerType }: RoutedTarget): boolean => enabled && providerType === PROVIDER;

/** What the first target of a model is called at its provider, by priority and then as they are listed. */
function servedName({ targets }: RoutedModel): string | null {
  const asked = targets.filter(isAsked);
  const first = Math.min(...asked.map(({ priority }) => priority));
  return asked.find(({ priority }) => priority === first)?.modelName ?? null;
}

/** The targets to ask, in this order. @throws EmbeddingUnavailable without any */
function targetsOf(model: RoutedModel, modelName: string | null): RoutedTarget[] {
  const request: RouteRequest = { purpose: EMBEDDING_PURPOSE };
  const refused = entitlementFinding(model, request) ?? modelFinding(model);
  if (refused) throw unavailableFor(refused);
  const ready: RoutedTarget[] = [];
  const probes: RoutedTarget[] = [];
  const leftOut: RouteFinding[] = [];
  for (const target of model.targets.filter((each) => isAsked(each) && each.modelName === modelName)) {
    const verdict = judgeTarget(target, model, request);
    if (verdict === 'ready') ready.push(target);
    else if (verdict === 'probe') probes.push(target);
    else leftOut.push(verdict);
  }
  const targets = [...routingOrder(ready, Math.random), ...routingOrder(probes, Math.random)];
  if (targets.length > 0) return targets;
  if (leftOut.length > 0) throw unavailableFor(nothingLeft(model.logicalModelId, leftOut));
  throw unavailable(`The model '${model.logicalModelId}' has no target at an account of the type '${PROVIDER}'.`);
}

/** @throws EmbeddingUnavailable for an account that does not say where its API is */
function endpointOf({ baseUrl, providerAccountId }: RoutedTarget): string {
  if (baseUrl === null) throw unavailable(`The provider account '${providerAccountId}' has no 'base_url'.`);
  return `${baseUrl.replace(/\/+$/, '')}/embeddings`;
}

/** The key in a secret: `api_key`, `token`, or the only text that there is. */
function keyOf(value: Readonly<Record<string, unknown>>): string | null {
  const texts = Object.values(value).filter((held) => typeof held === 'string');
  const named = value.api_key ?? value.token ?? (texts.length === 1 ? texts[0] : null);
  return typeof named === 'string' && named !== '' ? named : null;
}

function jsonOf(answer: OutboundResponse): unknown {
  try {
    return answer.json();
  } catch (error) {
    if (error instanceof OutboundError) return null;
    throw error;
  }
}

function outcomeOf(status: number, hasVectors: boolean): RequestOutcome {
  if (status === 401 || status === 403) return 'AUTH_FAILURE';
  if (status === 429) return 'RATE_LIMITED';
  if (status === 400 || status === 413 || status === 422) return 'INVALID_REQUEST';
  return hasVectors ? 'SUCCESS' : 'FAILURE';
}

/** What the answer means for the texts: of what it says itself, only the status. */
function failureOf({ status, headers }: OutboundResponse, outcome: RequestOutcome): EmbeddingUnavailable {
  const retryAfterSeconds = retryAfterOf(headers);
  if (outcome === 'INVALID_REQUEST') return unavailable(`The provider refused the texts with the status ${status}.`);
  if (outcome === 'AUTH_FAILURE') return new TargetFailed('The provider refused the credentials of its account.');
  if (outcome === 'RATE_LIMITED')
    return new TargetFailed('The provider asks for fewer requests.', { retryAfterSeconds });
  return status >= 200 && status < 300
    ? new TargetFailed('The provider did not answer with one vector for each text.')
    : new TargetFailed(`The provider answered with the status ${status}.`, { retryAfterSeconds });
}
