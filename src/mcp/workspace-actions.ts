import { createHash } from 'node:crypto';
import type { Tool } from '@modelcontextprotocol/server';
import { type DocumentNode, type ExecutionResult, parse } from 'graphql';
import type { CallerLimit } from '../access/caller-limit.ts';
import type { OwnDocuments } from '../engine/transport/own-documents.ts';
import type { Context } from '../graphql/context.ts';
import { ApiError } from '../kernel/errors.ts';
import { lruOf } from '../kernel/lru.ts';
import { principalId } from '../kernel/principal.ts';
import { isReading } from '../kernel/reading-actions.ts';
import { type ActionPart, actionSchema, shortText } from './action-schema.ts';
import { shownError } from './tool-results.ts';

const INSTANCE = `
  id name toolName toolSlug authMode hasCredentials connectionStatus configuration credentialFields
  effectiveActionSchemas mcpDescriptionOverride mcpMaxCallsPerTurn isActive`;
const pageOf = (name: string, fields: string) =>
  parse(`
  query ${name}($orgId: ID!, $workspaceId: ID!, $first: Int!, $after: String) {
    toolInstances(orgId: $orgId, workspaceId: $workspaceId, activeOnly: true, first: $first, after: $after) {
      nodes { ${fields} }
      pageInfo { hasNextPage endCursor }
    }
  }`);
const INSTANCES = pageOf('McpToolInstances', INSTANCE);
const IDS = pageOf('McpToolInstanceIds', 'id');
const ONE = parse(`
  query McpToolInstance($orgId: ID!, $workspaceId: ID!, $id: ID!) {
    toolInstance(orgId: $orgId, workspaceId: $workspaceId, id: $id) { ${INSTANCE} }
  }`);

/** So many instances of a workspace are looked at. */
const MAX_INSTANCES = 500;
const FIRST_PAGE = 20;
const PAGE = 100;
/** What a search looks through at most, in characters. */
const MAX_SEARCHED = 4_000_000;
/** So many workspaces are remembered, for so long. */
const SEARCHED = { entries: 16, ms: 3_000 };
const PLACES = { entries: 500, ms: 60_000 };

interface Instance {
  id: string;
  name: string;
  toolName: string;
  toolSlug: string;
  authMode: string;
  hasCredentials: boolean;
  connectionStatus: string;
  configuration: ActionPart;
  credentialFields: readonly string[];
  effectiveActionSchemas: readonly (ActionPart & { name: string })[];
  mcpDescriptionOverride: string | null;
  mcpMaxCallsPerTurn: number | null;
  isActive: boolean;
}

interface InstancePage<Row> {
  toolInstances: { nodes: Row[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } };
}

/** An action of an instance, as models call it. */
export interface ActionTool {
  name: string;
  instanceId: string;
  action: string;
  isReading: boolean;
  /** Whether somebody must agree to each call. */
  asks: boolean;
  /** How often a model may call the instance in one turn; `null` for as often as it wants. */
  maxCalls: number | null;
  /** All of it, as the protocol has it. */
  tool: () => Tool;
}

export interface Workspace {
  orgId: string;
  workspaceId: string;
}

export interface ActionScope {
  /** Only actions that read. */
  isReadOnly: boolean;
}

type FailedRead = { error: ExecutionResult };

/** What a search knows of an action. */
interface Searched {
  name: string;
  text: string;
  isReading: boolean;
  instanceId: string;
}

interface SearchIndex {
  entries: readonly Searched[];
  isComplete: boolean;
}

interface PageOptions<Row> {
  document: DocumentNode;
  first: number;
  /** Takes the rows of a page. @returns whether there is enough */
  take: (rows: readonly Row[]) => boolean;
}

/**
 * The actions of the connected, active instances of a workspace. A call loads the instance that its name is about. What
 * reads more does so once at a time for each caller and workspace, with each further page counted as a request.
 */
export class WorkspaceActions {
  readonly #documents: OwnDocuments;
  readonly #limit: Pick<CallerLimit, 'demandRest'>;
  /** Where instances are, by the ends of their ids. Who asks for one is checked again. */
  readonly #places = lruOf<Map<string, string[]>>(PLACES.entries, { ttl: PLACES.ms });
  readonly #searched = lruOf<SearchIndex>(SEARCHED.entries, { ttl: SEARCHED.ms });
  readonly #loading = new Map<string, Promise<unknown>>();

  constructor(documents: OwnDocuments, limit: Pick<CallerLimit, 'demandRest'>) {
    this.#documents = documents;
    this.#limit = limit;
    for (const document of [INSTANCES, IDS, ONE]) documents.add(document);
  }

  /** The one action that a tool of this name is; `null` if there is none. */
  async find(context: Context, workspace: Workspace, name: string): Promise<ActionTool | FailedRead | null> {
    const ends = endsIn(name);
    if (ends.length === 0) return null;
    const key = keyOf(context, workspace);
    const known = this.#places.get(key);
    const places =
      known && ends.some((end) => known.has(end))
        ? known
        : await this.#once(`ids ${key}`, () => this.#findPlaces(context, workspace, key));
    if ('error' in places) return places;
    for (const id of ends.flatMap((end) => places.get(end) ?? [])) {
      const found = await this.#actionsOf(context, workspace, id);
      if ('error' in found && !isMissing(found.error)) return found;
      const action = 'error' in found ? undefined : found.actions.find((one) => one.name === name);
      if (action) return action;
    }
    return null;
  }

  /**
   * All of them, in the order of their names, which do not change while the instance and the action are there.
   * @returns `null` for more than `most`
   */
  list(context: Context, workspace: Workspace, { isReadOnly, most }: ActionScope & { most: number }) {
    return this.#once(`list ${isReadOnly} ${keyOf(context, workspace)}`, async () => {
      const found: ActionTool[] = [];
      const failed = await this.#pages<Instance>(context, workspace, {
        document: INSTANCES,
        first: FIRST_PAGE,
        take(rows) {
          const actions = rows.filter(isUsable).flatMap(actionsOf);
          found.push(...actions.filter(({ isReading }) => isReading || !isReadOnly).slice(0, most + 1));
          return found.length > most;
        },
      });
      if (failed) return failed;
      return found.length > most ? null : { tools: found.sort(byName) };
    });
  }

  /** What has most of the words, best first. */
  async search(
    context: Context,
    workspace: Workspace,
    { words, limit, isReadOnly }: ActionScope & { words: readonly string[]; limit: number },
  ): Promise<{ tools: ActionTool[]; found: number; isComplete: boolean } | FailedRead> {
    const key = keyOf(context, workspace);
    const index =
      this.#searched.get(key) ?? (await this.#once(`search ${key}`, () => this.#index(context, workspace, key)));
    if ('error' in index) return index;
    const scored = index.entries
      .filter(({ isReading }) => isReading || !isReadOnly)
      .map((entry) => ({ entry, score: words.filter((word) => entry.text.includes(word)).length }))
      .filter(({ score }) => words.length === 0 || score > 0)
      .sort((a, b) => b.score - a.score);
    const tools: ActionTool[] = [];
    const loaded = new Map<string, { actions: ActionTool[] } | FailedRead>();
    for (const { entry } of scored.slice(0, limit)) {
      const { instanceId, name } = entry;
      const instance = loaded.get(instanceId) ?? (await this.#actionsOf(context, workspace, instanceId));
      loaded.set(instanceId, instance);
      if ('error' in instance && !isMissing(instance.error)) return instance;
      const action = 'error' in instance ? undefined : instance.actions.find((one) => one.name === name);
      if (action) tools.push(action);
    }
    return { tools, found: scored.length, isComplete: index.isComplete };
  }

  async #actionsOf(
    context: Context,
    workspace: Workspace,
    id: string,
  ): Promise<{ actions: ActionTool[] } | FailedRead> {
    const result = await this.#documents.execute(ONE, context, { ...workspace, id });
    if (result.errors || !result.data) return { error: result };
    const { toolInstance } = result.data as unknown as { toolInstance: Instance };
    return { actions: isUsable(toolInstance) ? actionsOf(toolInstance) : [] };
  }

  async #findPlaces(context: Context, workspace: Workspace, key: string): Promise<Map<string, string[]> | FailedRead> {
    const places = new Map<string, string[]>();
    const failed = await this.#pages<{ id: string }>(context, workspace, {
      document: IDS,
      first: PAGE,
      take(rows) {
        for (const { id } of rows) places.set(endOf(id), [...(places.get(endOf(id)) ?? []), id]);
        return false;
      },
    });
    if (failed) return failed;
    this.#places.set(key, places);
    return places;
  }

  async #index(context: Context, workspace: Workspace, key: string): Promise<SearchIndex | FailedRead> {
    const entries: Searched[] = [];
    let characters = 0;
    const failed = await this.#pages<Instance>(context, workspace, {
      document: INSTANCES,
      first: FIRST_PAGE,
      take(rows) {
        for (const action of rows.filter(isUsable).flatMap(searchedOf)) {
          characters += action.text.length;
          if (characters > MAX_SEARCHED) return true;
          entries.push(action);
        }
        return false;
      },
    });
    if (failed) return failed;
    const index = { entries: entries.sort(byName), isComplete: characters <= MAX_SEARCHED };
    this.#searched.set(key, index);
    return index;
  }

  /** Reads pages of instances until there is enough. @returns why one could not be read */
  async #pages<Row>(context: Context, workspace: Workspace, asked: PageOptions<Row>): Promise<FailedRead | null> {
    let after: string | null = null;
    for (let [first, seen] = [asked.first, 0]; seen < MAX_INSTANCES; [first, seen] = [PAGE, seen + first]) {
      const refused = after === null ? null : await this.#refusal(context);
      if (refused) return refused;
      const result: ExecutionResult = await this.#documents.execute(asked.document, context, {
        ...workspace,
        first,
        after,
      });
      if (result.errors || !result.data) return { error: result };
      const { nodes, pageInfo } = (result.data as unknown as InstancePage<Row>).toolInstances;
      if (asked.take(nodes) || !pageInfo.hasNextPage) return null;
      after = pageInfo.endCursor;
    }
    return null;
  }

  /** Counts a page; `null` if the caller has the rate for it. */
  async #refusal({ anyCaller }: Context): Promise<FailedRead | null> {
    try {
      await this.#limit.demandRest(anyCaller, 2);
      return null;
    } catch (error) {
      if (error instanceof ApiError) return { error: { errors: [error] } };
      throw error;
    }
  }

  /** Does something that is being done already no second time. */
  #once<T>(key: string, work: () => Promise<T>): Promise<T> {
    const running = this.#loading.get(key) as Promise<T> | undefined;
    if (running) return running;
    const started = work().finally(() => this.#loading.delete(key));
    this.#loading.set(key, started);
    return started;
  }
}

/** A caller in a workspace: what one may see is nothing for another. */
const keyOf = ({ caller: { principal } }: Context, { orgId, workspaceId }: Workspace): string =>
  JSON.stringify([principal.userId, principalId(principal), orgId, workspaceId]);

const isMissing = ({ errors: [error] = [] }: ExecutionResult): boolean =>
  error !== undefined && shownError(error)?.code === 'RESOURCE_NOT_FOUND';

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);

const UNUSABLE = new Set(['error', 'needs_reauth', 'pending', 'revoked']);

/** Whether an instance has what its calls need. */
const isUsable = ({ isActive, authMode, hasCredentials, connectionStatus }: Instance): boolean =>
  isActive && (authMode === 'none' || (hasCredentials && !UNUSABLE.has(connectionStatus)));

const actionsOf = (instance: Instance): ActionTool[] =>
  instance.effectiveActionSchemas.map((action) => ({
    name: nameOf(instance, action.name),
    instanceId: instance.id,
    action: action.name,
    isReading: isReading(action),
    asks: asks(action),
    maxCalls: instance.mcpMaxCallsPerTurn,
    tool: () => toolOf(instance, action),
  }));

const searchedOf = (instance: Instance): Searched[] =>
  instance.effectiveActionSchemas.map((action) => {
    const name = nameOf(instance, action.name);
    const text = `${name} ${titleOf(instance, action)} ${descriptionOf(instance, action)}`.toLowerCase();
    return { name, text, isReading: isReading(action), instanceId: instance.id };
  });

const methodOf = ({ method }: ActionPart): string => (typeof method === 'string' ? method.toUpperCase() : 'GET');
const asks = (action: ActionPart): boolean => action.requires_confirmation === true;
const titleOf = ({ name }: Instance, action: ActionPart) => shortText(`${name}: ${String(action.name)}`, 80);

function toolOf(instance: Instance, action: ActionPart & { name: string }): Tool {
  const known = new Set([...Object.keys(instance.configuration), ...instance.credentialFields]);
  const method = methodOf(action);
  return {
    name: nameOf(instance, action.name),
    title: titleOf(instance, action),
    description: descriptionOf(instance, action),
    inputSchema: actionSchema(action, known, asks(action)),
    annotations: {
      readOnlyHint: isReading(action),
      destructiveHint: action.is_destructive === true || method === 'DELETE',
      idempotentHint: isReading(action) || method === 'PUT' || method === 'DELETE',
      openWorldHint: true,
    },
  };
}

const LONGEST_NAME = 64;
const LONGEST_SLUG = 20;
const ID_END = 8;
const DIGEST = /_[\da-f]{6}$/;

const endOf = (id: string): string => id.slice(-ID_END);

/** Made of what never changes: the slug of the tool, the id of the instance and the name of the action. */
export function nameOf({ id, toolSlug }: Pick<Instance, 'id' | 'toolSlug'>, action: string): string {
  const plain = (text: string) => text.replaceAll(/[^\w-]/g, '_');
  const start = `${plain(toolSlug).slice(0, LONGEST_SLUG)}_${endOf(id)}__`;
  const room = LONGEST_NAME - start.length;
  // a plain name that ends like a digest could be the name of another action
  if (plain(action) === action && action.length <= room && !DIGEST.test(action)) return start + action;
  const digest = createHash('sha256').update(action).digest('hex').slice(0, 6);
  return `${start}${plain(action).slice(0, room - digest.length - 1)}_${digest}`;
}

/** What may be the end of an id in the name of a tool: the slug before it may have a part of this form, too. */
function endsIn(name: string): string[] {
  const starts = Array.from({ length: LONGEST_SLUG + 1 }, (_, at) => name.slice(at, at + ID_END + 3));
  return starts.flatMap((start) => /^_([^\W_]{8})__$/.exec(start)?.[1] ?? []);
}

/** What people of the workspace wrote, and where it is from. */
function descriptionOf(
  { name, toolName, mcpDescriptionOverride, mcpMaxCallsPerTurn: most }: Instance,
  action: ActionPart,
): string {
  const parts = [
    shortText(action.description, 300) || `The action ${shortText(action.name, 60)}.`,
    `Through '${shortText(name, 60)}' (${shortText(mcpDescriptionOverride ?? toolName, 200)}).`,
    ...(asks(action) ? ['It asks for a confirmation first.'] : []),
    ...(most === null ? [] : [`At most ${most} calls of '${shortText(name, 60)}' in a turn.`]),
  ];
  return parts.join(' ');
}
