import type { Authentication } from '../../access/authentication.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { ActivityRecorder } from '../../data/activity.ts';
import { emitChange } from '../../data/record-change.ts';
import { statement } from '../../data/writes.ts';
import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { conflict, invalidInput, rateLimited, unauthenticated } from '../../kernel/errors.ts';
import { isReadOnly } from '../../kernel/reading-actions.ts';
import { type SlotLimits, Slots } from '../../kernel/slots.ts';
import type { Logger } from '../../platform/logger.ts';
import { isDatabaseAway } from '../../platform/postgres/faults.ts';
import { type CallPlace, namespaceOf } from '../connections/call-place.ts';
import type { DataTransforms } from '../data-transforms/data-transforms.ts';
import { isTransform, type TransformAction } from '../data-transforms/transform-action.ts';
import { runnableTransform } from '../data-transforms/transform-checks.ts';
import type { ActionRequestParts } from '../tool-instances/action-request.ts';
import type { CalledInstances } from '../tool-instances/called-instances.ts';
import { checkConfiguration, fieldsOf } from '../tool-instances/configuration.ts';
import type { ToolAction } from '../tool-instances/effective-actions.ts';
import { demandRunnable } from '../tool-instances/runnable.ts';
import { placedSecrets, sentBy, withoutKeys } from '../tool-instances/sent-credential.ts';
import type { ToolInstance } from '../tool-instances/tool-instance.reads.ts';
import { toolNames } from '../tools/tool-shapes.ts';
import { shownJson, type WholeOfCut } from './action-answer.ts';
import { checkedArguments, PARAMETERS } from './action-arguments.ts';
import {
  type ActionCalls,
  type CallEnd,
  type CalledAction,
  demandKept,
  end as endOf,
  mendable,
} from './action-calls.ts';
import type { ActionLimits } from './action-limits.ts';
import { type Confirmations, type IssuedConfirmation, unconfirmed } from './confirmations.ts';
import type { AnswerRoom, LargeAnswers } from './large-answers.ts';
import { differenceFrom } from './output-check.ts';
import { OF_A_STREAM } from './page-items.ts';
import { ListReading, MAX_PAGES, type PagedAction, type PagedCalls, type StreamedAction } from './paged-calls.ts';
import { paginationOf, partsOfPage } from './pagination.ts';
import { MASK, Redactor, textsIn } from './redactor.ts';
import { hiddenValues, type ShownRequest, shownRequest } from './shown-request.ts';
import { onlyEnd, type StreamedPage, StreamedPages } from './streamed-pages.ts';
import type { ToolActionResult } from './tool-action-result.ts';
import type { WholeResult, WholeResults } from './whole-results.ts';

/** Which action to run, and with what. */
export interface ExecuteInput {
  action: string;
  parameters?: object | null;
  /** Shows the request and sends nothing. */
  dryRun?: boolean | null;
  /** Of an action that somebody must agree to. */
  confirmation?: string | null;
  /** Reads a list page by page, and so many pages at most. */
  maxPages?: number | null;
  /** The end user whose connection is used. */
  endUserId?: string | null;
}

/** Which list to read, and with what. */
export type StreamInput = Omit<ExecuteInput, 'dryRun'>;

/** Streams of pages at once: each holds a page that its client has not taken yet. */
const STREAMS: SlotLimits = { total: 128, perOwner: 16, waitingPerOwner: 0 };
/** Those of a user in an organization: whoever reads slowly holds up nobody else. */
const STREAMS_OF_USER: SlotLimits = { ...STREAMS, perOwner: 4 };

interface ToolActionDeps extends ServiceDeps {
  authentication: Pick<Authentication, 'lives'>;
  instances: CalledInstances;
  confirmations: Confirmations;
  calls: ActionCalls;
  pagedCalls: PagedCalls;
  transforms: DataTransforms;
  limits: ActionLimits;
  largeAnswers: Pick<LargeAnswers, 'with'>;
  wholeResults: Pick<WholeResults<unknown>, 'keep'>;
  activity: ActivityRecorder;
  logger: Logger;
  onFault: (error: unknown, what: string) => void;
}

/** An action with all that its request is made of. */
interface Prepared extends CalledAction {
  caller: Caller;
  /** The connection of the end user; `null` for a call for none. */
  endUsersConnectionId: string | null;
  /** How its pages are read; `null` for one call. */
  paged: Pick<PagedAction, 'pagination' | 'most'> | null;
  /** What it does with data; `null` if it sends a request. */
  transform: TransformAction | null;
}

/**
 * Runs actions of tool instances. What a caller can mend is an error; whatever the provider does is a result. Each
 * execution is recorded with how it ended, and without any value.
 */
export class ToolActions {
  readonly #deps: ToolActionDeps;
  readonly #streams = new Slots(STREAMS, tooManyStreams);
  readonly #streamsOfUsers = new Slots(STREAMS_OF_USER, tooManyStreams);

  constructor(deps: ToolActionDeps) {
    this.#deps = deps;
  }

  /**
   * Runs an action, or shows what it would send.
   * @throws RESOURCE_NOT_FOUND, also `unknown_end_user`; RESOURCE_CONFLICT `instance_inactive`, `tool_disabled`,
   * `configuration_invalid`; InputError for arguments that the action does not accept, or a confirmation that is not
   * of this call; RATE_LIMIT_EXCEEDED
   */
  async execute(caller: Caller, place: CallPlace, id: string, input: ExecuteInput): Promise<ToolActionResult> {
    const prepared = await this.#prepared(caller, place, id, input);
    if (input.dryRun) return this.#shown(prepared);
    const asking = await this.#confirmed(prepared, input);
    if (asking) return asking;
    this.#log(prepared);
    return this.#deps.largeAnswers.with(prepared.instance.orgId, async (room) => {
      const { whole, ...shown } = await this.#run(prepared, room);
      await this.#record(prepared, { ...shown, whole });
      const wholeResult = whole && (await this.#kept(prepared, whole));
      return { ...this.#about(prepared), ...shown, wholeResult };
    });
  }

  async #run(prepared: Prepared, room: AnswerRoom): Promise<CallEnd> {
    const { calls, pagedCalls } = this.#deps;
    const { caller, instance, paged, transform } = prepared;
    if (transform) return this.#transformed(prepared, transform);
    const called = { ...prepared, room };
    return mendable(instance, () =>
      paged ? pagedCalls.make(caller, { ...called, ...paged }) : calls.make(caller, called),
    );
  }

  #kept(prepared: Prepared, whole: WholeOfCut): Promise<WholeResult> {
    const { caller, action } = prepared;
    const { id: toolInstanceId, ...place } = rowOf(prepared);
    return this.#deps.wholeResults.keep(caller, { ...place, toolInstanceId }, action.name, whole);
  }

  /**
   * Reads a list page by page, each when the one before was taken. The last message says how it ended, and so does the
   * only one of an action that must be confirmed first.
   * @throws as {@link execute}, before the first page; what happens then is said at the end
   */
  async stream(
    caller: Caller,
    place: CallPlace,
    id: string,
    { maxPages, ...input }: StreamInput,
  ): Promise<AsyncIterableIterator<StreamedPage>> {
    const given = { ...input, maxPages: maxPages ?? MAX_PAGES };
    const prepared = await this.#prepared(caller, place, id, given, STREAMED_AT);
    const { instance, paged } = prepared;
    if (!paged) throw new Error('The pages of an action that has none were asked for.');
    const leave = this.#enter(`${instance.orgId} ${caller.principal.userId}`, instance.orgId);
    try {
      const asking = await this.#confirmed(prepared, input);
      if (asking) {
        leave();
        return onlyEnd(asking);
      }
    } catch (error) {
      leave();
      throw error;
    }
    this.#log(prepared);
    const { pagedCalls } = this.#deps;
    const abort = new AbortController();
    const demand = () => this.#demandStill(prepared);
    const called: StreamedAction = { ...prepared, ...paged, signal: abort.signal, demand };
    const reading = new ListReading(paged.pagination, OF_A_STREAM);
    return new StreamedPages({
      called,
      reading,
      abort,
      pages: pagedCalls.read(caller, called, reading),
      endOf: (...of) => pagedCalls.endOf(...of),
      finish: async (end) => {
        leave();
        await this.#record(prepared, end);
        return { ...this.#about(prepared), ...end };
      },
    });
  }

  /** What the caller was allowed at the beginning may have ended. @throws ApiError */
  async #demandStill({ caller, instance, namespaceId }: Prepared): Promise<void> {
    const { access, authentication } = this.#deps;
    const { orgId, workspaceId } = instance;
    if (!(await authentication.lives(caller.principal))) throw unauthenticated();
    await access.requireWorkspace(caller, orgId, workspaceId, 'tool_instance:execute', { namespaceId });
  }

  /** @returns gives the place of a stream back, once @throws RATE_LIMIT_EXCEEDED */
  #enter(user: string, orgId: string): () => void {
    if (!this.#streamsOfUsers.takeNow(user)) throw tooManyStreams();
    if (!this.#streams.takeNow(orgId)) {
      this.#streamsOfUsers.release(user);
      throw tooManyStreams();
    }
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#streams.release(orgId);
      this.#streamsOfUsers.release(user);
    };
  }

  /** Begins a call, unless somebody must agree to it first. @returns the answer to a call without a confirmation */
  async #confirmed(prepared: Prepared, { confirmation }: StreamInput): Promise<ToolActionResult | null> {
    if (prepared.action.requires_confirmation !== true) {
      await this.#begin(prepared, null);
      return null;
    }
    const call = await this.#callToConfirm(prepared);
    if (!confirmation) return this.#asking(prepared, call);
    await this.#begin(prepared, { token: confirmation, call: call.digested });
    return null;
  }

  /** What the end of the process cuts off is seen by this line alone. */
  #log({ caller, instance, action }: Prepared): void {
    this.#deps.logger.info(
      { trace_id: caller.request.traceId, org_id: instance.orgId, tool_instance_id: instance.id, action: action.name },
      'an action begins',
    );
  }

  /** @param pagesAt where the call says that it reads pages */
  async #prepared(
    caller: Caller,
    place: CallPlace,
    id: string,
    input: ExecuteInput,
    pagesAt: readonly string[] = PAGED_AT,
  ): Promise<Prepared> {
    const { instances, limits, calls } = this.#deps;
    const { instance, tool, kept } = await instances.get(place, id);
    const namespaceId = namespaceOf(place, instance);
    const action = instance.effectiveActionSchemas.find(({ name }) => name === input.action);
    if (!action) throw invalidInput(['input', 'action'], 'the instance has no action of this name');
    // first of all: checking arguments costs something, too
    await limits.demand({ instance, action });
    const given = (input.parameters ?? {}) as Record<string, unknown>;
    const values = checkedArguments(action, instance.configuration, given, PARAMETERS);
    if (!input.dryRun) demandRunnable(instance, tool);
    demandConfiguration(instance, tool);
    const endUserId = input.endUserId ?? null;
    const use = { orgId: instance.orgId, toolInstanceId: id, namespaceId };
    const endUsersConnectionId = endUserId ? await calls.connections.demandEndUser({ ...use, endUserId }) : null;
    const own = kept();
    // what the instance signs in with is not for the calls of its end users
    const secrets = endUserId ? withoutKeys(tool, own) : own;
    const whole: ActionRequestParts = {
      action,
      parameters: values,
      configuration: instance.configuration,
      secrets,
      credentials: placedSecrets(tool, secrets),
    };
    const transform = isTransform(action)
      ? runnableTransform(action, [...toolNames(tool), ...Object.keys(instance.configuration)])
      : null;
    const paged = pagedBy(transform ? { name: action.name } : action, input, pagesAt);
    const parts = paged ? partsOfPage(whole, paged.pagination.first, true) : whole;
    return { caller, instance, tool, action, namespaceId, endUserId, endUsersConnectionId, parts, paged, transform };
  }

  /**
   * From here on the call may have been made: neither its confirmation nor its `Idempotency-Key` makes it again, even
   * if the process ends before the provider has answered.
   */
  async #begin(prepared: Prepared, confirmed: { token: string; call: unknown } | null): Promise<void> {
    const { changes, confirmations } = this.#deps;
    const { caller } = prepared;
    if (!confirmed && !caller.request.idempotencyId) return;
    const isConfirmed = await changes.run(
      caller,
      async (tx) => !confirmed || confirmations.consume(tx, confirmed.token, confirmerOf(prepared), confirmed.call),
    );
    if (!isConfirmed) throw unconfirmed();
  }

  /** What a transform makes of its arguments. @throws InputError for arguments of which it makes nothing */
  async #transformed(
    { caller, instance, tool, action, parts }: Prepared,
    transform: TransformAction,
  ): Promise<CallEnd> {
    const { parameters, configuration } = parts;
    const startedAt = performance.now();
    const task = { action: transform, parameters, configuration };
    const result = await this.#deps.transforms.run(caller, instance.orgId, task, PARAMETERS);
    const redactor = new Redactor(textsIn([parts.secrets, hiddenValues(parts)]));
    const difference = action.output_schema === undefined ? null : differenceFrom(action.output_schema, result);
    const fault = difference === null ? null : redactor.clean(difference);
    return endOf({
      ...shownJson(result, redactor),
      success: fault === null,
      code: fault === null ? 'ok' : 'schema_mismatch',
      message: fault === null ? `${tool.name} has a result.` : `${tool.name} has a result, but ${fault}.`,
      sizeBytes: Buffer.byteLength(JSON.stringify(result)),
      durationMs: Math.round(performance.now() - startedAt),
    });
  }

  /** The answer to a dry run. */
  async #shown(prepared: Prepared): Promise<ToolActionResult> {
    const request = await this.#requestOf(prepared);
    const end = endWithout(
      'dry_run',
      prepared.transform ? 'The transform can run. It was not run.' : 'The request is complete. It was not sent.',
    );
    this.#deps.activity.record(
      prepared.caller,
      { ...entryOf(prepared, end), metadata: { code: end.code, action: prepared.action.name } },
      { statusCode: prepared.caller.request.successStatus },
    );
    return { ...this.#about(prepared), ...end, request };
  }

  async #callToConfirm(prepared: Prepared) {
    const { instance, action, namespaceId, endUserId, parts, paged, transform } = prepared;
    const request = await this.#requestOf(prepared);
    const what = request ?? transform;
    const digested = [instance.id, namespaceId, endUserId, action.name, parts.parameters, what, paged?.most ?? null];
    return { request, digested };
  }

  /** The answer to the first call of an action that somebody must agree to. */
  async #asking(
    prepared: Prepared,
    { request, digested }: { request: ShownRequest | null; digested: unknown },
  ): Promise<ToolActionResult> {
    const { changes, confirmations } = this.#deps;
    const end = endWithout(
      'confirmation_required',
      prepared.transform
        ? 'Nothing was done. To do it, make the same call again with the confirmation.'
        : 'Nothing was sent. To send it, make the same call again with the confirmation.',
    );
    const issued = await changes.run<IssuedConfirmation>(prepared.caller, async (tx) => {
      tx.audit({ ...entryOf(prepared, end), metadata: { code: end.code, action: prepared.action.name } });
      return confirmations.issue(tx, confirmerOf(prepared), digested);
    });
    const confirmation = { confirmation: issued.token, confirmationExpiresAt: issued.expiresAt };
    return { ...this.#about(prepared), ...end, request, ...confirmation };
  }

  /** What would be sent, without asking any provider for a token. `null` for an action that sends nothing. */
  async #requestOf(prepared: Prepared): Promise<ShownRequest | null> {
    const { parts, tool, action, instance, namespaceId, endUserId } = prepared;
    if (typeof action.url_template !== 'string') return null;
    const { orgId, id: toolInstanceId } = instance;
    const authType =
      parts.credentials.length > 0
        ? null
        : await this.#deps.calls.connections.kindOf({ orgId, toolInstanceId, namespaceId, endUserId });
    const sent = authType ? sentBy(tool, action, { authType, secret: MASK }) : { credentials: parts.credentials };
    const redactor = new Redactor(textsIn([parts.secrets, hiddenValues(parts)]));
    return mendable(instance, () => {
      if (parts.credentials.length === 0 && !authType) demandKept(prepared);
      return shownRequest({ ...parts, ...sent, secrets: { ...parts.secrets, ...sent.secrets } }, redactor);
    });
  }

  #about({ instance, action }: Prepared) {
    const { orgId, id: toolInstanceId } = instance;
    return {
      orgId,
      toolInstanceId,
      action: action.name,
      request: null,
      confirmation: null,
      confirmationExpiresAt: null,
      wholeResult: null,
    };
  }

  /**
   * Counts and tells an execution. What was done stays done while the database is away: then only the record follows.
   */
  async #record(prepared: Prepared, end: CallEnd): Promise<void> {
    const { changes, activity, onFault } = this.#deps;
    const { caller, instance, action } = prepared;
    const entry = entryOf(prepared, end);
    try {
      await changes.run(caller, async (tx) => {
        tx.write(countOf(instance, action, end.success));
        tx.audit(entry);
        const { code, status, durationMs } = end;
        const data = { action: action.name, code, status, duration_ms: durationMs };
        emitChange(tx, end.success ? 'executed' : 'failed', 'tool_action', rowOf(prepared), data);
      });
    } catch (error) {
      if (!isDatabaseAway(error)) throw error;
      onFault(error, 'an executed action could not be counted');
      activity.record(caller, entry, { statusCode: caller.request.successStatus, success: end.success });
    }
  }
}

const rowOf = ({ instance, namespaceId }: Prepared) => ({
  id: instance.id,
  orgId: instance.orgId,
  workspaceId: instance.workspaceId,
  namespaceId,
});

const entryOf = (prepared: Prepared, { code, success, status, durationMs, sizeBytes, attempts, pages }: CallEnd) => {
  const { id: resourceId, ...place } = rowOf(prepared);
  return {
    action: 'execute',
    resourceType: 'tool_instance',
    resourceId,
    ...place,
    success,
    metadata: {
      code,
      action: prepared.action.name,
      status,
      duration_ms: durationMs,
      size_bytes: sizeBytes,
      attempts,
      ...(pages && { pages: pages.count, pages_ended: pages.ended }),
      ...(prepared.endUsersConnectionId !== null && { connection_id: prepared.endUsersConnectionId }),
    },
  } as const;
};

const tooManyStreams = () => rateLimited(1, 'Too many lists of tools are read page by page at once.');

const confirmerOf = ({ caller: { principal }, instance }: Prepared) => ({
  orgId: instance.orgId,
  toolInstanceId: instance.id,
  userId: principal.userId,
  tokenId: principal.token?.id ?? null,
});

/** Counters of more actions than any instance has at once are of names that are gone. */
const MAX_COUNTED = 500;

function countOf({ orgId, id }: ToolInstance, { name }: ToolAction, success: boolean) {
  const [executed, failed] = success ? [1, 0] : [0, 1];
  return statement`
    update tool_instances set usage_count = usage_count + 1, last_used_at = now(),
      action_counts = case
        when action_counts ? ${name} or (select count(*) from jsonb_object_keys(action_counts)) < ${MAX_COUNTED}
        then jsonb_set(action_counts, array[${name}::text], jsonb_build_object(
          'executed', coalesce((action_counts -> ${name} ->> 'executed')::bigint, 0) + ${executed},
          'failed', coalesce((action_counts -> ${name} ->> 'failed')::bigint, 0) + ${failed}))
        else action_counts end
    where org_id = ${orgId} and id = ${id}`;
}

/** How a call ends that was not made. */
const endWithout = (code: string, message: string): CallEnd => ({
  success: true,
  code,
  message,
  status: null,
  headers: {},
  format: 'none',
  result: null,
  truncated: false,
  whole: null,
  sizeBytes: 0,
  excerpt: null,
  attempts: 0,
  durationMs: 0,
  pages: null,
});

const PAGED_AT = ['input', 'maxPages'];
const STREAMED_AT = ['input', 'action'];
const CHANGES = 'the action may change something, so it is called once, and not page by page';

/**
 * How the pages of a call are read; `null` for a call that is to read one. What changes something is called once: where
 * the next page is, only the provider says.
 * @throws InputError for an action without pages, or that may change something
 */
function pagedBy(action: ToolAction, { maxPages }: ExecuteInput, at: readonly string[]): Prepared['paged'] {
  if (maxPages === null || maxPages === undefined) return null;
  const pagination = paginationOf(action);
  if (!pagination) throw invalidInput([...at], 'the action has no pagination');
  if (!isReadOnly(action)) throw invalidInput([...at], CHANGES);
  return { pagination, most: Math.min(maxPages, pagination.maxPages) };
}

/** @throws RESOURCE_CONFLICT if the stored configuration is not one that the tool, as it is now, accepts */
function demandConfiguration({ id, configuration }: ToolInstance, tool: ToolRow): void {
  const { issues } = checkConfiguration(fieldsOf(tool), configuration, configuration, []);
  const fields = [...new Set(issues.map(({ path }) => String(path[0])))];
  if (fields.length > 0)
    throw conflict(
      'tool_instance',
      id,
      'configuration_invalid',
      `The configuration does not fit the tool: ${fields.join(', ')}.`,
      { fields },
    );
}
