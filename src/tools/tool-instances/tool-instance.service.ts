import { isDeepStrictEqual } from 'node:util';
import { reachesEveryWorkspace } from '../../access/role-grants.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import type { Given } from '../../data/given.ts';
import type { Page, PageArgs } from '../../data/page.ts';
import type { Words } from '../../data/paging.ts';
import { recordChange } from '../../data/record-change.ts';
import { type CallerContext, noCache } from '../../data/request-cache.ts';
import type { RowDependent } from '../../data/row-dependents.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { ToolInstance as InstanceRow, Tool as ToolRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, WorkspacePlace } from '../../kernel/checked-place.ts';
import { type ApiError, conflict, InputError, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import type { SecretReads } from '../../vault/secrets/secret.reads.ts';
import { demandShown } from '../../vault/secrets/secret-to-send.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import type { ConnectionRemoval } from '../connections/connection-removal.ts';
import { keepsOfOthers, refusedBecause, revealRefusal } from '../tools/kept-credentials.ts';
import { checkActionChanges, type GivenChanges } from './action-changes.ts';
import { type CheckedConfiguration, checkConfiguration, fieldsOf, type ToolFields } from './configuration.ts';
import type { InstanceDependents } from './instances-of-removed-namespace.ts';
import {
  type InstanceFilters,
  instanceReads,
  type StoredInstance,
  type ToolInstance,
  type ToolPlace,
  visible,
} from './tool-instance.reads.ts';
import { upgraded } from './tool-instance.upgrade.ts';

type Changeable =
  | Words<'name description authMode authConfig isActive'>
  | Words<'mcpDescriptionOverride mcpActionFilter mcpActionDescriptions mcpMaxCallsPerTurn mcpRequiresConfirmation'>;

interface UpdateToolInstance extends Given<InstanceRow, Changeable>, GivenChanges {
  configuration?: object | null;
  /** Replaces all four. */
  connectionCredentials?: Given<InstanceRow, Client> | null;
}

type Client = 'clientId' | 'clientSecretVaultId' | 'callbackUrl' | 'scopesOverride';

export type CreateToolInstance = UpdateToolInstance &
  Pick<InstanceRow, 'toolId' | 'name'> & { namespaceId?: string | null };

/** What an upgrade did. */
export interface UpgradeResult {
  instanceId: string;
  orgId: string;
  previousVersion: number;
  newVersion: number;
  migrationApplied: boolean;
  /** What the versions in between changed; empty if nothing was done. */
  changelog: string;
  instance: ToolInstance;
}

type InstanceReads = ReturnType<typeof instanceReads>;

interface InstanceDeps extends ServiceDeps {
  vault: Vault;
  credentials: Credentials;
  secretReads: SecretReads;
  connections: ConnectionRemoval;
  /** What uses instances. */
  dependents: InstanceDependents;
}

const CLIENT_SECRET = ['input', 'connectionCredentials', 'clientSecretVaultId'];
/** References to other vaults: `external:client`. */
export const EXTERNAL = /^[a-z][a-z0-9+.-]*:/;
const NO_REFERENCE =
  'this is not a reference: store the client secret as a secret, and name that with secret:// or by its identifier';
const CONFIGURATION = ['input', 'configuration'];

/**
 * Tool instances: the configured use of a tool in a workspace. Members may change their own, editors all. What the tool
 * calls sensitive is sealed in the same transaction (docs/decisions/0012) and never shown.
 */
export class ToolInstanceService {
  readonly secretReferences = [
    { resource: 'tool_instance', table: 'tool_instances', column: 'client_secret_vault_id' },
  ] as const;
  readonly reads: InstanceReads['reads'];
  readonly allOfTool: InstanceReads['allOfTool'];
  readonly ownOfTool: InstanceReads['ownOfTool'];
  readonly #deps: InstanceDeps;

  constructor(deps: InstanceDeps) {
    this.#deps = deps;
    const { reads, allOfTool, ownOfTool } = instanceReads(deps);
    this.reads = reads;
    this.allOfTool = allOfTool;
    this.ownOfTool = ownOfTool;
  }

  /** The instances of a tool that the caller may read, in all workspaces of the organization, newest first. */
  async listOfTool(
    context: CallerContext,
    place: Checked<ToolPlace>,
    args: PageArgs & InstanceFilters,
  ): Promise<Page<ToolInstance>> {
    const role = await this.#deps.access.organizationRole(context.caller, place.orgId);
    const reads = role !== null && reachesEveryWorkspace(role) ? this.allOfTool : this.ownOfTool;
    return reads.list(context, place, args);
  }

  /**
   * @throws RESOURCE_NOT_FOUND `tool` or `namespace`, RESOURCE_CONFLICT `tool_disabled`, InputError for a configuration
   * that the tool does not accept; FORBIDDEN `secret:reveal` for a client secret that goes where the tool says
   */
  async create(caller: Caller, place: Checked<WorkspacePlace>, input: CreateToolInstance): Promise<ToolInstance> {
    const { changes, access, vault } = this.#deps;
    const { orgId, workspaceId } = place;
    const namespaceId = input.namespaceId ? await access.parts.findPart(place, 'namespace', input.namespaceId) : null;
    const id = newId('tool_instance');
    const row = { id, orgId, workspaceId, namespaceId };
    const shown = await this.#demandSecret(caller, { orgId, toolId: input.toolId, kept: null }, input);
    await changes.run(caller, async (tx) => {
      if (namespaceId)
        tx.demand('namespaces', { id: namespaceId }, 'key share', () => notFound('namespace', namespaceId));
      const tool = await lockTool(tx, orgId, input.toolId);
      if (tool.status === 'disabled') throw disabled(tool);
      const checked = checkConfiguration(fieldsOf(tool), entriesOf(input.configuration), {}, CONFIGURATION);
      if (checked.issues.length > 0) throw new InputError(checked.issues);
      const around = { tool, configuration: checked.plain, customActionParameters: {} };
      const actionChanges = checkActionChanges(around, input);
      const client = input.connectionCredentials ?? {};
      const hasSecrets = Object.keys(checked.secrets).length > 0;
      if (hasSecrets) await this.#deps.credentials.prepare(tx);
      if (client.clientSecretVaultId) {
        const found = await vault.demandReference(tx, orgId, client.clientSecretVaultId, CLIENT_SECRET);
        if (tool.orgId !== null) demandShown(found, shown);
      }
      tx.insert('tool_instances', {
        ...row,
        toolId: tool.id,
        name: input.name,
        description: input.description ?? null,
        configuration: checked.plain,
        credentialRefs: refsOf(id, Object.keys(checked.secrets)),
        authMode: input.authMode ?? undefined,
        authConfig: input.authConfig ?? undefined,
        ...actionChanges,
        ...clientOf(client),
        isActive: input.isActive ?? undefined,
        mcpDescriptionOverride: input.mcpDescriptionOverride ?? null,
        mcpActionFilter: input.mcpActionFilter ?? [],
        mcpActionDescriptions: input.mcpActionDescriptions ?? undefined,
        mcpMaxCallsPerTurn: input.mcpMaxCallsPerTurn ?? null,
        mcpRequiresConfirmation: input.mcpRequiresConfirmation ?? undefined,
        schemaVersion: tool.currentSchemaVersion,
        createdBy: caller.principal.userId,
      });
      if (hasSecrets)
        await this.#deps.credentials.put(tx, orgId, { toolInstanceId: id }, checked.secrets, {
          setBy: caller.principal.userId,
        });
      recordChange(tx, 'create', 'tool_instance', row, { tool_id: tool.id });
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * Changes the given fields. A configuration replaces the plain one; secrets that it does not name stay.
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for an instance of others; InputError for a configuration that the tool, as
   * it is now, does not accept
   */
  async update(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    id: string,
    input: UpdateToolInstance,
  ): Promise<ToolInstance> {
    const { orgId } = place;
    const { toolId, clientSecretVaultId: kept } = await this.reads.own(caller, place, id);
    const shown = await this.#demandSecret(caller, { orgId, toolId, kept }, input);
    const refusal = await this.#revealRefusal(caller, place);
    await this.#deps.changes.run(caller, async (tx) => {
      const tool = await lockTool(tx, orgId, toolId);
      const before = await lockInstance(tx, id);
      await tx.expectVersion({ table: 'tool_instances', key: { id } });
      const checked = input.configuration
        ? checkConfiguration(fieldsOf(tool), entriesOf(input.configuration), before.configuration, CONFIGURATION)
        : null;
      if (checked && checked.issues.length > 0) throw new InputError(checked.issues);
      const { configuration, customActionParameters } = before;
      const around = { tool, configuration: checked?.plain ?? configuration, customActionParameters };
      const actionChanges = checkActionChanges(around, input);
      const { connectionCredentials: client } = input;
      const isSteered =
        Object.keys(actionChanges).length > 0 ||
        input.authConfig !== undefined ||
        (checked !== null && !isDeepStrictEqual(checked.plain, before.configuration));
      if (isSteered && refusal) await demandOwnCredentials(tx, caller, before, checked?.secrets ?? {}, refusal);
      const changesSecrets = checked !== null && touchesSecrets(checked, before);
      if (changesSecrets) await this.#deps.credentials.prepare(tx);
      if (client?.clientSecretVaultId) {
        const reference = client.clientSecretVaultId;
        const found = await this.#deps.vault.demandReference(tx, orgId, reference, CLIENT_SECRET);
        if (tool.orgId !== null && reference !== before.clientSecretVaultId) demandShown(found, shown);
      }
      const credentialRefs = changesSecrets ? await this.#putSecrets(tx, caller, before, checked) : undefined;
      const set: Columns<'tool_instances'> = {
        name: input.name ?? undefined,
        description: input.description,
        configuration: checked?.plain,
        credentialRefs,
        authMode: input.authMode ?? undefined,
        authConfig: input.authConfig ?? undefined,
        ...actionChanges,
        ...(client === undefined ? {} : clientOf(client ?? {})),
        isActive: input.isActive ?? undefined,
        mcpDescriptionOverride: input.mcpDescriptionOverride,
        mcpActionFilter: input.mcpActionFilter ?? undefined,
        mcpActionDescriptions: input.mcpActionDescriptions ?? undefined,
        mcpMaxCallsPerTurn: input.mcpMaxCallsPerTurn,
        mcpRequiresConfirmation: input.mcpRequiresConfirmation ?? undefined,
      };
      tx.update('tool_instances', { id }, set);
      recordChange(tx, 'update', 'tool_instance', before, { fields: Object.keys(input) });
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * Deletes an instance with its connections, whose tokens are revoked, and everything that it keeps secret.
   * @param options.force takes it from steps that use it, which needs `augmentation:update`
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for an instance of others; RESOURCE_CONFLICT `in_use` with `references` while
   * steps use it
   */
  async delete(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    id: string,
    { force }: { force: boolean },
  ): Promise<Deleted<WorkspacePlace & { namespaceId: string | null }>> {
    const row = await this.reads.own(caller, place, id);
    const { access, changes, dependents } = this.#deps;
    if (force) await access.requireWorkspace(caller, place.orgId, place.workspaceId, 'augmentation:update');
    return changes.run(caller, async (tx) => {
      if (force) await dependents.lock(tx, { ...place, ids: [id] });
      await tx.lock('tool_instances', { id }, 'update', () => notFound('tool_instance', id));
      await tx.expectVersion({ table: 'tool_instances', key: { id } });
      if (force) await dependents.detach(tx, { ...place, ids: [id] });
      const references = force ? [] : await dependents.find(tx, { ...place, ids: [id] });
      if (references.length > 0) throw inUse(id, references);
      await this.#deps.connections.removeOfInstance(tx, row);
      tx.remove('tool_instances', { id }, () => notFound('tool_instance', id));
      recordChange(tx, 'delete', 'tool_instance', row);
      return row;
    });
  }

  /**
   * Switches an instance on or off; the same again is fine, and is recorded too, like any update that changes nothing.
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for an instance of others
   */
  async toggle(caller: Caller, place: Checked<WorkspacePlace>, id: string, isActive: boolean): Promise<ToolInstance> {
    const row = await this.reads.own(caller, place, id);
    await this.#deps.changes.run(caller, async (tx) => {
      await tx.expectVersion({ table: 'tool_instances', key: { id } });
      tx.change('tool_instances', { id }, { isActive }, () => notFound('tool_instance', id));
      recordChange(tx, 'toggle', 'tool_instance', row, { is_active: isActive });
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * Brings an instance to the latest schema of its tool: defaults are filled in, keys that the tool does not know any
   * more are kept in `metadata.removed`. Does nothing if it is there already.
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN for an instance of others; RESOURCE_CONFLICT `manual_migration_required` with
   * the `fields` that need a value, InputError for a given value that the tool does not accept
   */
  async upgrade(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    id: string,
    configuration: object | null,
  ): Promise<UpgradeResult> {
    const { orgId } = place;
    const { toolId } = await this.reads.own(caller, place, id);
    const refusal = configuration === null ? null : await this.#revealRefusal(caller, place);
    const result = await this.#deps.changes.run(caller, async (tx) => {
      const tool = await lockTool(tx, orgId, toolId);
      const before = await lockInstance(tx, id);
      await tx.expectVersion({ table: 'tool_instances', key: { id } });
      const previousVersion = before.schemaVersion;
      const newVersion = tool.currentSchemaVersion;
      const done = { instanceId: id, orgId, previousVersion, newVersion };
      if (previousVersion >= newVersion)
        return { ...done, newVersion: previousVersion, migrationApplied: false, changelog: '' };
      const fields = fieldsOf(tool);
      const given = entriesOf(configuration);
      const after = upgraded(fields, before, given, CONFIGURATION);
      if (refusal && steers(fields, before, given, after.plain))
        await demandOwnCredentials(tx, caller, before, after.secrets, refusal);
      if (touchesSecrets(after, before)) {
        await this.#deps.credentials.prepare(tx);
        tx.update('tool_instances', { id }, { credentialRefs: await this.#putSecrets(tx, caller, before, after) });
      }
      tx.update(
        'tool_instances',
        { id },
        { configuration: after.plain, metadata: after.metadata, schemaVersion: newVersion },
      );
      recordChange(tx, 'upgrade', 'tool_instance', before, {
        previous_version: previousVersion,
        new_version: newVersion,
      });
      const changelog = changelogBetween(tool, previousVersion, newVersion);
      return { ...done, migrationApplied: true, changelog };
    });
    return { ...result, instance: await this.reads.get(noCache, place, id) };
  }

  /**
   * Whoever names a secret sends it to the provider: only those who may see that secret. The provider of a tool of the
   * organization is where its people want it to be, so it takes those who may see the value
   * (docs/decisions/0070); that of a built-in tool is fixed.
   * @param kept the reference that the instance has, which sends nothing new
   * @returns the secret whose value the caller may see, if it had to be
   * @throws FORBIDDEN, RESOURCE_NOT_FOUND; InputError for what is no reference, because it may be the secret itself
   */
  async #demandSecret(
    caller: Caller,
    { orgId, toolId, kept }: { orgId: string; toolId: string; kept: string | null },
    { connectionCredentials }: UpdateToolInstance,
  ): Promise<string | null> {
    const reference = connectionCredentials?.clientSecretVaultId;
    if (!reference) return null;
    const { sql, vault, secretReads } = this.#deps;
    const found = await vault.resolve(sql, orgId, reference);
    if (found.kind === 'external' && !EXTERNAL.test(reference)) throw invalidInput(CLIENT_SECRET, NO_REFERENCE);
    const secret = found.kind === 'secret' ? await secretReads.all.findInTenant(noCache, orgId, found.id) : null;
    if (!secret) return null;
    await secretReads.demand(caller, secret, 'secret:read');
    if (reference === kept || (await isBuiltIn(sql, toolId))) return null;
    await secretReads.demand(caller, secret, 'secret:reveal');
    return secret.id;
  }

  #revealRefusal(caller: Caller, { orgId, workspaceId }: WorkspacePlace): Promise<ApiError | null> {
    return revealRefusal(() => this.#deps.access.requireWorkspace(caller, orgId, workspaceId, 'secret:reveal'));
  }

  /**
   * Seals the secrets of an instance anew. They are the caller's, unless some of others stay among them, or nothing is
   * given.
   * @returns its references
   */
  async #putSecrets(
    tx: Tx,
    { principal: { userId } }: Caller,
    { id, orgId }: StoredInstance,
    { secrets, cleared }: Pick<CheckedConfiguration, 'secrets' | 'cleared'>,
  ): Promise<Record<string, string>> {
    const { credentials } = this.#deps;
    const owner = { toolInstanceId: id };
    const kept: Record<string, unknown> = { ...(await credentials.open(tx, orgId, owner)) };
    for (const name of cleared) delete kept[name];
    const stays = Object.keys(kept).some((name) => !Object.hasOwn(secrets, name));
    const setBy = !stays || (await credentials.setterOf(tx, orgId, owner)) === userId ? userId : null;
    const isLess = Object.keys(secrets).length === 0;
    Object.assign(kept, secrets);
    const names = Object.keys(kept);
    if (names.length > 0) await credentials.put(tx, orgId, owner, kept, { setBy: isLess ? undefined : setBy });
    else await credentials.remove(tx, orgId, owner);
    return refsOf(id, names);
  }
}

/** Whether nobody but the service decides where a tool sends something. */
async function isBuiltIn(db: QueryRunner, toolId: string): Promise<boolean> {
  const rows = await db.query(statement`select 1 from tools where id = ${toolId} and org_id is null`);
  return rows.length > 0;
}

/** The tool as it is until the transaction ends. @throws RESOURCE_NOT_FOUND, also for a tool of another organization */
async function lockTool(tx: Tx, orgId: string, id: string): Promise<ToolRow> {
  return visible(await tx.lock('tools', { id }, 'share'), orgId, id);
}

async function lockInstance(tx: Tx, id: string): Promise<StoredInstance> {
  const row = await tx.lock('tool_instances', { id }, 'no key update', () => notFound('tool_instance', id));
  return row as unknown as StoredInstance;
}

/**
 * Configuration and actions decide where credentials go. Whoever changes them could have those of others sent to a host
 * of their own.
 * @param given the secrets that come with the change
 * @param refusal why the caller may not see secrets
 * @throws FORBIDDEN `secret:reveal` if the instance would keep credentials of others
 */
async function demandOwnCredentials(
  tx: Tx,
  { principal: { userId } }: Caller,
  { id, credentialRefs }: StoredInstance,
  given: Readonly<Record<string, unknown>>,
  refusal: ApiError,
): Promise<void> {
  const isKept = Object.keys(credentialRefs).some((name) => !Object.hasOwn(given, name));
  if (await keepsOfOthers(tx, { id, isKept, userId }))
    throw refusedBecause(
      refusal,
      'The instance has credentials of other users, which this change could send elsewhere.',
    );
}

/** Whether given values make the configuration after an upgrade another than it would have been without them. */
const steers = (
  { fields, sensitive }: ToolFields,
  { configuration }: StoredInstance,
  given: Readonly<Record<string, unknown>>,
  plain: Readonly<Record<string, unknown>>,
): boolean =>
  Object.keys(given).some((name) => {
    const anyway = Object.hasOwn(configuration, name) ? configuration[name] : (fields.get(name)?.default ?? undefined);
    return !sensitive.has(name) && !isDeepStrictEqual(plain[name], anyway);
  });

const inUse = (id: string, references: readonly RowDependent[]) =>
  conflict(
    'tool_instance',
    id,
    'in_use',
    'Steps of augmentations use the tool instance: change them first, or delete it with `force`.',
    { references },
  );

const disabled = ({ id }: ToolRow) =>
  conflict('tool', id, 'tool_disabled', `The tool '${id}' is disabled: new instances cannot be created.`);

const entriesOf = (object: object | null | undefined): Record<string, unknown> => ({ ...object });

/** Whether the sealed object of an instance changes. */
const touchesSecrets = (
  { secrets, cleared }: Pick<CheckedConfiguration, 'secrets' | 'cleared'>,
  before: StoredInstance,
): boolean => Object.keys(secrets).length > 0 || cleared.some((name) => Object.hasOwn(before.credentialRefs, name));

/** What instances show in place of their secrets. */
const refsOf = (id: string, names: readonly string[]): Record<string, string> =>
  Object.fromEntries([...names].sort().map((name) => [name, `vault://${id}/${name}`]));

const clientOf = ({ clientId, clientSecretVaultId, callbackUrl, scopesOverride }: Given<InstanceRow, Client>) => ({
  clientId: clientId ?? null,
  clientSecretVaultId: clientSecretVaultId ?? null,
  callbackUrl: callbackUrl ?? null,
  scopesOverride: scopesOverride ?? [],
});

function changelogBetween({ schemaChangelog }: ToolRow, from: number, to: number): string {
  const changelog = schemaChangelog as Record<string, string>;
  const versions = Array.from({ length: to - from }, (_, index) => from + index + 1);
  return versions.flatMap((version) => (changelog[version] ? [`${version}: ${changelog[version]}`] : [])).join('\n');
}
