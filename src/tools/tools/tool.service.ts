import type { ServiceDeps } from '../../access/service-deps.ts';
import { brokenUnique } from '../../data/changes.ts';
import type { Given } from '../../data/given.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import type { Words } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { type CallerContext, noCache, type RequestCache } from '../../data/request-cache.ts';
import { MAX_DEPENDENTS } from '../../data/row-dependents.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { alreadyExists, conflict, InputError, invalidInput, notFound, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { type ImportSource, steersNextImport } from '../imports/import-source.ts';
import { demandNoCredentials, revealRefusal, steeringOf } from './kept-credentials.ts';
import { entryNames, foreignNames, strayPlaceholders } from './placeholders.ts';
import { changeOf } from './schema-version.ts';
import { type Tool, type ToolFilters, tools } from './tool.reads.ts';
import { misplacedIn, toolNames } from './tool-shapes.ts';

type Lists = 'configSchema' | 'credentialSchema' | 'actionSchemas' | 'mcpFunctions';
type Changeable = Words<
  | 'name slug description shortDescription category version status iconUrl documentationUrl connectionServiceName'
  | 'author tags supportedActions supportedStepTypes customActionType isMcpCompatible minSchemaVersion'
  | 'supportsConnection'
>;

interface UpdateTool extends Given<ToolRow, Changeable>, Partial<Record<Lists, object[] | null>> {
  /** Adds entries, or corrects them. The entry of a version that this change makes is added if it is missing. */
  schemaChangelog?: Record<string, string> | null;
}

export type CreateTool = Omit<UpdateTool, 'minSchemaVersion'> & Pick<ToolRow, 'name' | 'slug' | 'description'>;

/** The arguments of a list of tools. */
export interface ToolArgs extends PageArgs, ToolFilters {
  /** A workspace that the caller must be able to see. The catalogue is the same in each. */
  workspaceId?: string | null;
}

/** Most bytes of one list of a tool. */
export const MAX_LIST_BYTES = 256 * 1024;

/** Where a status may move to (defaults §13). */
const moves: Readonly<Record<string, readonly string[]>> = {
  active: ['beta', 'deprecated', 'disabled'],
  beta: ['active', 'deprecated', 'disabled'],
  deprecated: ['disabled'],
  disabled: ['active', 'beta', 'deprecated'],
};

/** The catalogue of an organization: its own tools, and the built-in ones, which nobody changes. */
export class ToolService {
  readonly reads: Reads<Tool, OrganizationPlace, PageArgs & ToolFilters>;
  /** The same tools, each known by its slug. An organization's own tool comes before a built-in one. */
  readonly bySlug: Reads<Tool, OrganizationPlace, PageArgs & ToolFilters>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, tools);
    this.bySlug = new Reads(deps, { ...tools, name: 'tools_by_slug', known: { by: 'slug' } });
  }

  /** The catalogue as the schema reads it. */
  readonly catalogue = {
    list: async (context: CallerContext, place: Checked<OrganizationPlace>, args: ToolArgs): Promise<Page<Tool>> => {
      const { workspaceId, ...filters } = args;
      if (workspaceId)
        await this.#deps.access.requireWorkspace(context.caller, place.orgId, workspaceId, 'workspace:read');
      return this.reads.list(context, place, filters);
    },
    get: (context: RequestCache, place: Checked<OrganizationPlace>, id: string) => this.reads.get(context, place, id),
    find: (context: RequestCache, place: Checked<OrganizationPlace>, id: string) => this.reads.find(context, place, id),
    findInTenant: (context: RequestCache, orgId: string, id: string) => this.reads.findInTenant(context, orgId, id),
    /** A built-in tool is found in the catalogue of the organization in which the caller is. */
    findUnscoped: async (context: CallerContext, id: string): Promise<Tool | null> => {
      const { orgId } = context.caller.principal;
      return (
        (await this.reads.findUnscoped(context, id)) ?? (orgId ? this.reads.findInTenant(context, orgId, id) : null)
      );
    },
  };

  /**
   * @param importSource where its actions came from
   * @throws RESOURCE_ALREADY_EXISTS for a slug that is taken, also by a built-in tool; InputError
   */
  async create(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    input: CreateTool,
    importSource: ImportSource | null = null,
  ): Promise<Tool> {
    const { orgId } = place;
    checkNewTool(input);
    const id = newId('tool');
    await this.#unique(orgId, id, input.slug, () =>
      this.#deps.changes.run(caller, async (tx) => {
        insertTool(tx, caller, { id, orgId }, input, { importSource });
      }),
    );
    return this.reads.get(noCache, place, id);
  }

  /**
   * Changes the given fields. Another config or action schema raises the schema version, with an entry in the
   * changelog.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `builtin_tool`, or `invalid_status` for a status that cannot follow;
   * FORBIDDEN `secret:reveal` for a change that could send credentials of others elsewhere; RESOURCE_ALREADY_EXISTS,
   * InputError like {@link create}
   */
  async update(caller: Caller, place: Checked<OrganizationPlace>, id: string, input: UpdateTool): Promise<Tool> {
    checkLists(input);
    return this.#change(caller, place, id, { slug: input.slug, saysWhere: saysWhere(input) }, () => ({ input }));
  }

  /**
   * Changes the actions of a tool by what they are at that moment.
   * @param reimported gives the actions, and where they came from; it may refuse
   * @throws like {@link update}
   */
  reimport(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    reimported: (before: ToolRow) => { actionSchemas: object[]; importSource: ImportSource },
  ): Promise<Tool> {
    return this.#change(caller, place, id, { slug: null, saysWhere: true }, (before) => {
      const { actionSchemas, importSource } = reimported(before);
      return { input: { actionSchemas }, importSource };
    });
  }

  async #change(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    about: { slug: string | null | undefined; saysWhere: boolean },
    changed: (before: ToolRow) => { input: UpdateTool; importSource?: ImportSource },
  ): Promise<Tool> {
    const { orgId } = place;
    const { isBuiltin, slug } = await this.reads.get(noCache, place, id);
    if (isBuiltin) throw builtIn(id);
    const refusal = about.saysWhere
      ? await revealRefusal(() => this.#deps.access.requireOrganization(caller, orgId, 'secret:reveal'))
      : null;
    await this.#unique(orgId, id, about.slug ?? slug, () =>
      this.#deps.changes.run(caller, async (tx) => {
        const before = await tx.lock('tools', { id, orgId }, 'no key update', () => notFound('tool', id));
        await tx.expectVersion({ table: 'tools', key: { id } });
        const { input, importSource } = changed(before);
        refuseMove(before, input.status);
        const lists = listsOf(before);
        checkDescriptors(input, lists);
        const after = listsAfter(lists, input);
        const { clients, any } = steeringOf(lists, after);
        const steering = { clients, any: any || (importSource !== undefined && leadsElsewhere(before, importSource)) };
        if (refusal && steering.any) await demandNoCredentials(tx, caller, { id, orgId }, steering, refusal);
        const change = changeOf(lists, after);
        const version = before.currentSchemaVersion + (change === null ? 0 : 1);
        checkChangelog(input.schemaChangelog, version);
        if (typeof input.minSchemaVersion === 'number' && input.minSchemaVersion > version)
          throw invalidInput(['input', 'minSchemaVersion'], `the current version is ${version}`);
        // a log keeps its past: entries are added and corrected, never removed
        const changelog = { ...(before.schemaChangelog as Record<string, string>), ...input.schemaChangelog };
        const isNew = change !== null && !(String(version) in changelog);
        tx.update(
          'tools',
          { id },
          {
            name: input.name ?? undefined,
            slug: input.slug ?? undefined,
            description: input.description ?? undefined,
            shortDescription: input.shortDescription,
            category: input.category ?? undefined,
            version: input.version ?? undefined,
            status: input.status ?? undefined,
            iconUrl: input.iconUrl,
            documentationUrl: input.documentationUrl,
            connectionServiceName: input.connectionServiceName,
            author: input.author,
            tags: input.tags ?? undefined,
            supportedActions: input.supportedActions ?? undefined,
            supportedStepTypes: input.supportedStepTypes ?? undefined,
            configSchema: input.configSchema ?? undefined,
            credentialSchema: input.credentialSchema ?? undefined,
            actionSchemas: input.actionSchemas ?? undefined,
            mcpFunctions: input.mcpFunctions ?? undefined,
            customActionType: input.customActionType ?? undefined,
            isMcpCompatible: input.isMcpCompatible ?? undefined,
            minSchemaVersion: input.minSchemaVersion ?? undefined,
            currentSchemaVersion: version,
            schemaChangelog: isNew ? { ...changelog, [version]: change } : changelog,
            supportsConnection: input.supportsConnection ?? undefined,
            importSource,
          },
        );
        const metadata = { fields: Object.keys(input), ...(change !== null && { schema_version: version }) };
        recordChange(tx, 'update', 'tool', { id, orgId }, metadata);
      }),
    );
    return this.reads.get(noCache, place, id);
  }

  /**
   * Deletes a tool that no instance uses. Its slug is free again.
   * @throws RESOURCE_NOT_FOUND; RESOURCE_CONFLICT `builtin_tool`, or `in_use` with `references`
   */
  async delete(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Deleted<OrganizationPlace>> {
    const { orgId } = place;
    const { isBuiltin } = await this.reads.get(noCache, place, id);
    if (isBuiltin) throw builtIn(id);
    return this.#deps.changes.run(caller, async (tx) => {
      // whoever makes an instance locks its tool first
      await tx.lock('tools', { id, orgId }, 'update', () => notFound('tool', id));
      await tx.expectVersion({ table: 'tools', key: { id } });
      const instances = await tx.query<{ id: string; workspaceId: string }>(statement`
        select t.id, t.workspace_id as "workspaceId" from tool_instances t
        where t.org_id = ${orgId} and t.tool_id = ${id} order by t.id desc limit ${MAX_DEPENDENTS}`);
      if (instances.length > 0) throw inUse(id, instances);
      tx.remove('tools', { id, orgId }, () => notFound('tool', id));
      recordChange(tx, 'delete', 'tool', { id, orgId });
      return { orgId, id };
    });
  }

  /** Runs a change that gives a tool a slug. @throws RESOURCE_ALREADY_EXISTS with the tool that has it */
  async #unique<T>(orgId: string, id: string, slug: string, work: () => Promise<T>): Promise<T> {
    const taken = async () => {
      const [other] = await this.#deps.sql.read<{ id: string }>(
        'select id from tools where slug = $2 and id <> $3 and (org_id = $1 or org_id is null) order by org_id limit 1',
        [orgId, slug, id],
      );
      return other?.id;
    };
    const other = await taken();
    if (other) throw alreadyExists('tool', 'slug', slug, other);
    try {
      return await work();
    } catch (error) {
      if (!brokenUnique(error)) throw error;
      throw alreadyExists('tool', 'slug', slug, await taken());
    }
  }
}

/**
 * What is wrong with a new tool, as far as it stands in it.
 * @param version its schema version
 * @throws InputError
 */
export function checkNewTool(input: CreateTool, version = 1): void {
  checkLists(input);
  checkDescriptors(input, { configSchema: [], credentialSchema: [], actionSchemas: [] });
  checkChangelog(input.schemaChangelog, version);
}

/**
 * Writes a new tool, which was checked, with its record and its event.
 * @param more the versions of a copy (default: 1 and 1), and where imported actions came from
 */
export function insertTool(
  tx: Tx,
  caller: Caller,
  { id, orgId }: OrganizationPlace & { id: string },
  input: CreateTool,
  more: { currentSchemaVersion?: number; minSchemaVersion?: number; importSource?: ImportSource | null } = {},
): void {
  tx.insert('tools', {
    id,
    orgId,
    name: input.name,
    slug: input.slug,
    description: input.description,
    shortDescription: input.shortDescription ?? null,
    category: input.category ?? 'custom',
    version: input.version ?? '1.0.0',
    status: input.status ?? 'active',
    iconUrl: input.iconUrl ?? null,
    documentationUrl: input.documentationUrl ?? null,
    connectionServiceName: input.connectionServiceName ?? null,
    author: input.author ?? null,
    tags: input.tags ?? [],
    supportedActions: input.supportedActions ?? [],
    supportedStepTypes: input.supportedStepTypes ?? [],
    configSchema: input.configSchema ?? [],
    credentialSchema: input.credentialSchema ?? [],
    actionSchemas: input.actionSchemas ?? [],
    mcpFunctions: input.mcpFunctions ?? [],
    customActionType: input.customActionType ?? 'none',
    isMcpCompatible: input.isMcpCompatible ?? false,
    schemaChangelog: input.schemaChangelog ?? {},
    supportsConnection: input.supportsConnection ?? false,
    ...more,
    createdBy: caller.principal.userId,
  });
  recordChange(tx, 'create', 'tool', { id, orgId }, { slug: input.slug });
}

const builtIn = (id: string) =>
  conflict('tool', id, 'builtin_tool', `The tool '${id}' is built in: it is the same in every organization.`);

const inUse = (id: string, instances: readonly { id: string; workspaceId: string }[]) =>
  conflict('tool', id, 'in_use', 'Tool instances use the tool: delete them first.', {
    references: instances.map(({ id: resource_id, workspaceId: workspace_id }) => ({
      resource_type: 'tool_instance',
      resource_id,
      workspace_id,
    })),
  });

type Described = Record<Exclude<Lists, 'mcpFunctions'>, object[]>;

const listsOf = ({ configSchema, credentialSchema, actionSchemas }: ToolRow): Described => ({
  configSchema: configSchema as object[],
  credentialSchema: credentialSchema as object[],
  actionSchemas: actionSchemas as object[],
});

const listsAfter = (before: Described, input: UpdateTool): Described => ({
  configSchema: input.configSchema ?? before.configSchema,
  credentialSchema: input.credentialSchema ?? before.credentialSchema,
  actionSchemas: input.actionSchemas ?? before.actionSchemas,
});

const leadsElsewhere = ({ importSource }: ToolRow, after: ImportSource): boolean =>
  steersNextImport(importSource as unknown as ImportSource | null, after);

/** Whether an input says where credentials go, or how. */
const saysWhere = ({ configSchema, credentialSchema, actionSchemas }: UpdateTool): boolean =>
  Boolean(configSchema ?? credentialSchema ?? actionSchemas);

function refuseMove({ id, status: before }: ToolRow, status: string | null | undefined): void {
  if (!status || status === before || moves[before]?.includes(status)) return;
  throw conflict('tool', id, 'invalid_status', `A tool that is ${before} cannot become ${status}.`);
}

const listNames = ['configSchema', 'credentialSchema', 'actionSchemas', 'mcpFunctions'] as const;

/** Names must be unique within a list, and a list must not be too large. @throws InputError */
function checkLists(input: Partial<Record<Lists, object[] | null>>): void {
  for (const list of listNames) {
    const entries = input[list] ?? [];
    if (Buffer.byteLength(JSON.stringify(entries)) > MAX_LIST_BYTES)
      throw invalidInput(['input', list], `it has more than ${MAX_LIST_BYTES} bytes`);
    const names = entries.map((entry) => ('name' in entry ? entry.name : undefined));
    const repeated = names.findIndex((name, index) => names.indexOf(name) < index);
    if (repeated >= 0) throw invalidInput(['input', list, repeated, 'name'], 'another entry has this name');
  }
}

/**
 * Every placeholder of given actions names something, what actions use is not taken from them, and credentials have the
 * properties of their kind. What was wrong before hinders no other change.
 * @throws InputError
 */
function checkDescriptors(input: Partial<Record<Lists, object[] | null>>, before: Described): void {
  const { configSchema, credentialSchema, actionSchemas } = input;
  if (!configSchema && !credentialSchema && !actionSchemas) return;
  const after = {
    configSchema: configSchema ?? before.configSchema,
    credentialSchema: credentialSchema ?? before.credentialSchema,
  };
  const names = toolNames(after);
  const issues = actionSchemas
    ? strayPlaceholders(actionSchemas, () => names, ['input', 'actionSchemas'])
    : lostNames(before, names).map(({ list, name, action }) =>
        valueIssue(['input', list], `the action '${action}' uses {{${name}}}: change it too`),
      );
  const misplaced = misplacedIn(credentialSchema ?? []).map(({ path, ...issue }) => ({
    ...issue,
    path: ['input', 'credentialSchema', ...path],
  }));
  issues.push(...misplaced);
  if (issues.length > 0) throw new InputError(issues);
}

/** The names that actions of a tool use and that it has no more. */
function lostNames(before: Described, after: ReadonlySet<string>) {
  const lost = (['configSchema', 'credentialSchema'] as const).flatMap((list) =>
    entryNames(before[list]).flatMap((name) => (after.has(name) ? [] : [{ list, name }])),
  );
  if (lost.length === 0) return [];
  const used = before.actionSchemas.map((action) => ({ action, names: foreignNames(action) }));
  return lost.flatMap(({ list, name }) => {
    const user = used.find(({ names }) => names.has(name));
    return user ? [{ list, name, action: entryNames([user.action])[0] ?? '' }] : [];
  });
}

/** @throws InputError for an entry of a version that does not exist */
function checkChangelog(changelog: Record<string, string> | null | undefined, version: number): void {
  for (const key of Object.keys(changelog ?? {}))
    if (!/^[1-9]\d{0,8}$/.test(key) || Number(key) > version)
      throw invalidInput(['input', 'schemaChangelog', key], `it must be a version from 1 to ${version}`);
}
