import { isDeepStrictEqual } from 'node:util';
import type { Authentication } from '../../access/authentication.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Budget } from '../../access/throttle.ts';
import { brokenUnique } from '../../data/changes.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import type { PageArgs } from '../../data/page.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { whileTaken } from '../../data/while-taken.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { alreadyExists, forbidden, InputError, invalidInput, notFound, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Permission } from '../../kernel/resources.ts';
import { asRole, atLeast, higherRole, type Role } from '../../kernel/roles.ts';
import type { SecretReads } from '../../vault/secrets/secret.reads.ts';
import { demandReveal, demandShown } from '../../vault/secrets/secret-to-send.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { returnAddresses } from '../auth/held-addresses.ts';
import type { Sessions } from '../auth/sessions.ts';
import type { SamlMetadata } from '../sso/saml/metadata-check.ts';
import type { MetadataSource } from '../sso/saml/metadata-source.ts';
import {
  type GroupMapping,
  type IdentityProvider,
  mappingsOf,
  type Protocol,
  providers,
} from './identity-provider.reads.ts';
import { columnsOfConfig, domainKeysOf, type OidcConfig, type ProviderConfig } from './provider-config.ts';
import { columnsOfSource, demandRoom, overwritten, readInput } from './saml-metadata.ts';
import { lockUsersOf, suspendTokens } from './token-suspension.ts';

type Optional<Row> = { [Key in keyof Row]?: Row[Key] | null | undefined };

interface UpdateIdentityProvider extends ProviderConfig {
  name?: string | null | undefined;
  protocol?: string | null | undefined;
  verifiedDomains?: readonly string[] | null | undefined;
  groupMappings?:
    | readonly (Pick<GroupMapping, 'group' | 'roleId'> & Optional<Pick<GroupMapping, 'workspaceId'>>)[]
    | null;
  groupAttribute?: string | null | undefined;
  defaultRoleId?: Role | null | undefined;
  defaultWorkspaceId?: string | null | undefined;
  defaultWorkspaceRole?: Role | null | undefined;
  autoCreateUsers?: boolean | null | undefined;
  autoUpdateProfile?: boolean | null | undefined;
  isActive?: boolean | null | undefined;
  suspendsTokens?: boolean | null | undefined;
}

interface CreateIdentityProvider extends UpdateIdentityProvider {
  name: string;
  protocol: string;
}

interface IdentityProviderDeps extends ServiceDeps {
  vault: Vault;
  secretReads: SecretReads;
  sessions: Sessions;
  authentication: Authentication;
  metadata: MetadataSource;
}

/**
 * What decides who is signed in, and with which role. Whoever changes any of it answers for all of it: the provider
 * signs in nobody above them from then on (docs/decisions/0023).
 */
const DECISIVE = [
  'samlEntityId',
  'samlSsoUrl',
  'samlCertificate',
  'samlNameIdFormat',
  'samlAllowsUnsolicited',
  'samlMetadataUrl',
  'samlMetadataCertificate',
  'oidcClientId',
  'oidcClientSecretRef',
  'oidcDiscoveryUrl',
  'oidcScopes',
  'verifiedDomains',
  'groupMappings',
  'groupAttribute',
  'defaultRoleId',
  'defaultWorkspaceId',
  'defaultWorkspaceRole',
  'autoCreateUsers',
] as const;

/** How often the administrators of an organization may have metadata read, in a minute. */
const METADATA_PER_MINUTE = 10;

/** Where the users of an organization sign in (spec, Identity providers). */
export class IdentityProviderService {
  readonly secretReferences = [
    { resource: 'identity_provider', table: 'identity_providers', column: 'oidc_client_secret_ref' },
  ] as const;
  readonly reads: Reads<IdentityProvider, OrganizationPlace, PageArgs>;
  readonly #deps: IdentityProviderDeps;
  readonly #metadataReads: Budget;

  constructor(deps: IdentityProviderDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, providers);
    this.#metadataReads = deps.budgets.of('saml_metadata', METADATA_PER_MINUTE, 60);
  }

  /**
   * Adds a provider.
   * @throws InputError for a configuration that cannot be right, FORBIDDEN for a role above the caller's own, or
   * `secret:reveal` for the client secret, RESOURCE_ALREADY_EXISTS for a domain of another provider; UPSTREAM_ERROR,
   * UPSTREAM_TIMEOUT if metadata cannot be read; RATE_LIMIT_EXCEEDED if it was read often, RESOURCE_CONFLICT
   * `limit_reached` if it is read of many
   */
  async create(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    input: CreateIdentityProvider,
  ): Promise<IdentityProvider> {
    const { orgId } = place;
    const id = newId('identity_provider');
    const written = columnsOfConfig(input.protocol as Protocol, input);
    const read = await this.#readInput(orgId, input);
    const config = { ...written, ...columnsOfSource(input, read, null) };
    const domains = domainKeysOf(input.verifiedDomains ?? []);
    const sent = { before: null, shown: await this.#demandSecret(caller, orgId, null, config) };
    await this.#unique({ id, orgId }, domains, () =>
      this.#deps.changes.run(caller, async (tx) => {
        if (read) await demandRoom(tx, orgId);
        const { groupMappings = [], ...set } = await this.#columnsOf(tx, orgId, input, config, sent);
        const defaultRoleId = set.defaultRoleId ?? 'member';
        const own = await ownRole(tx, caller, orgId);
        const defaultWorkspaceRole = set.defaultWorkspaceRole ?? 'member';
        refuseAbove(own, { defaultRoleId, defaultWorkspaceRole, groupMappings }, 'identity_provider:create');
        tx.insert('identity_providers', {
          ...set,
          id,
          orgId,
          name: input.name,
          protocol: input.protocol,
          groupMappings,
          defaultRoleId,
          authority: own,
          createdBy: caller.principal.userId,
        });
        await claim(tx, { id, orgId }, domains);
        recordChange(tx, 'create', 'identity_provider', { id, orgId }, { protocol: input.protocol });
      }),
    );
    return this.reads.get(noCache, place, id);
  }

  /**
   * Changes the given fields. To switch a provider off ends the sessions that it made.
   * @throws RESOURCE_NOT_FOUND, and like {@link create}
   */
  async update(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    input: UpdateIdentityProvider,
  ): Promise<IdentityProvider> {
    const { orgId } = place;
    const domains = input.verifiedDomains ? domainKeysOf(input.verifiedDomains) : null;
    const read = await this.#readMetadata(place, id, input);
    const shown = input.oidcConfig?.clientSecretRef
      ? await this.#demandSecret(
          caller,
          orgId,
          await this.reads.get(noCache, place, id),
          destinationIn(input.oidcConfig),
        )
      : null;
    await this.#unique({ id, orgId }, domains ?? [], () =>
      this.#deps.changes.run(caller, async (tx) => {
        if (input.isActive === false) await lockUsersOf(tx, id);
        const before = await tx.lock('identity_providers', { id, orgId }, 'no key update', () =>
          notFound('identity_provider', id),
        );
        await tx.expectVersion({ table: 'identity_providers', key: { id } });
        const protocol = before.protocol as Protocol;
        if (input.protocol && input.protocol !== protocol)
          throw invalidInput(['input', 'protocol'], 'it cannot change: create another identity provider instead');
        if (read && before.samlMetadataUrl === null) await demandRoom(tx, orgId);
        const config = { ...columnsOfConfig(protocol, input), ...columnsOfSource(input, read, before) };
        const issues = overwritten(input, before);
        if (issues.length > 0) throw new InputError(issues);
        const set = await this.#columnsOf(tx, orgId, input, config, { before, shown });
        const authority = await this.#authorityAfter(tx, caller, before, set);
        tx.update('identity_providers', { id }, { ...set, ...authority });
        if (domains) await claim(tx, { id, orgId }, domains);
        const isOff = before.isActive && input.isActive === false;
        const ended = isOff
          ? await this.#endSessions(
              tx,
              { ...before, suspendsTokens: input.suspendsTokens ?? before.suspendsTokens },
              'identity_provider_disabled',
            )
          : {};
        recordChange(tx, 'update', 'identity_provider', before, { fields: Object.keys(input), ...ended });
      }),
    );
    return this.reads.get(noCache, place, id);
  }

  /** What the metadata says that a change names, of a provider that may have such; `null` if it names none. */
  async #readMetadata(
    place: Checked<OrganizationPlace>,
    id: string,
    input: UpdateIdentityProvider,
  ): Promise<SamlMetadata | null> {
    if (!input.samlMetadata) return null;
    const { protocol } = await this.reads.get(noCache, place, id);
    columnsOfConfig(protocol as Protocol, input);
    return this.#readInput(place.orgId, input);
  }

  #readInput(orgId: string, input: ProviderConfig): Promise<SamlMetadata | null> {
    const mayRead = () => this.#metadataReads.demand(orgId);
    return readInput({ source: this.#deps.metadata, mayRead }, orgId, input);
  }

  /** Deletes a provider with its links, and ends the sessions that it made. @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, { orgId }: Checked<OrganizationPlace>, id: string): Promise<Deleted<OrganizationPlace>> {
    return whileTaken(() => this.#deps.changes.run(caller, (tx) => this.#delete(tx, { id, orgId })));
  }

  async #delete(tx: Tx, { id, orgId }: ProviderKey): Promise<Deleted<OrganizationPlace>> {
    await lockUsersOf(tx, id);
    const provider = await tx.lock('identity_providers', { id, orgId }, 'update', () =>
      notFound('identity_provider', id),
    );
    await tx.expectVersion({ table: 'identity_providers', key: { id } });
    const ended = await this.#endSessions(tx, provider, 'identity_provider_deleted');
    const links = await tx.query<{ userId: string }>(
      statement`select user_id as "userId" from identity_links where identity_provider_id = ${id}`,
    );
    tx.remove('identity_providers', { id });
    returnAddresses(
      tx,
      links.map(({ userId }) => userId),
    );
    recordChange(tx, 'delete', 'identity_provider', { id, orgId }, ended);
    return { id, orgId };
  }

  /** Ends all that the provider has let in. @returns what the record of the change says of it */
  async #endSessions(
    tx: Tx,
    { id, orgId, suspendsTokens }: Pick<ProviderRow, 'id' | 'orgId' | 'suspendsTokens'>,
    reason: string,
  ): Promise<{ tokens_suspended?: number }> {
    this.#deps.sessions.revokeOfProvider(tx, id, reason);
    tx.afterCommit(() => this.#deps.authentication.sessionsChanged());
    return suspendsTokens ? { tokens_suspended: await suspendTokens(tx, { identityProviderId: id, orgId }) } : {};
  }

  /** @returns the secret that would be sent, if its value had to be the caller's to see @throws FORBIDDEN */
  async #demandSecret(
    caller: Caller,
    orgId: string,
    before: Destination | null,
    after: Destination,
  ): Promise<string | null> {
    const reference = after.oidcClientSecretRef;
    return reference && sendsElse(before, after) ? demandReveal(this.#deps, caller, orgId, reference) : null;
  }

  /** What an input sets, once all that it refers to is there. */
  async #columnsOf(
    tx: Tx,
    orgId: string,
    input: UpdateIdentityProvider,
    config: Columns<'identity_providers'>,
    sent: { before: Destination | null; shown: string | null },
  ): Promise<Columns<'identity_providers'> & { groupMappings?: GroupMapping[] | undefined }> {
    const { groupMappings } = input;
    const named = [
      ...(groupMappings ?? []).map(({ workspaceId }, index) => ({
        workspaceId,
        path: ['input', 'groupMappings', index, 'workspaceId'],
      })),
      { workspaceId: input.defaultWorkspaceId, path: ['input', 'defaultWorkspaceId'] },
    ];
    await demandWorkspaces(tx, orgId, named);
    // the last one, by the order of locks
    if (config.oidcClientSecretRef) {
      const found = await this.#deps.vault.demandReference(tx, orgId, config.oidcClientSecretRef, CLIENT_SECRET);
      if (sendsElse(sent.before, config)) demandShown(found, sent.shown);
    }
    return {
      ...config,
      name: input.name ?? undefined,
      verifiedDomains: input.verifiedDomains ?? undefined,
      groupMappings: groupMappings?.map(({ group, roleId, workspaceId }) => ({
        group,
        roleId,
        workspaceId: workspaceId ?? null,
      })),
      groupAttribute: input.groupAttribute ?? undefined,
      defaultRoleId: input.defaultRoleId ?? undefined,
      defaultWorkspaceId: input.defaultWorkspaceId,
      defaultWorkspaceRole: input.defaultWorkspaceRole ?? undefined,
      autoCreateUsers: input.autoCreateUsers ?? undefined,
      autoUpdateProfile: input.autoUpdateProfile ?? undefined,
      isActive: input.isActive ?? undefined,
      suspendsTokens: input.suspendsTokens ?? undefined,
    };
  }

  /** The authority of the provider after a change; nothing while what decides stays as it is. @throws FORBIDDEN */
  async #authorityAfter(
    tx: Tx,
    caller: Caller,
    before: ProviderRow,
    set: Columns<'identity_providers'>,
  ): Promise<{ authority?: Role }> {
    const isChanged = DECISIVE.some((name) => set[name] !== undefined && !isDeepStrictEqual(set[name], before[name]));
    if (!isChanged) return {};
    const own = await ownRole(tx, caller, before.orgId);
    const groupMappings = (set.groupMappings as readonly GroupMapping[] | undefined) ?? mappingsOf(before);
    const defaultRoleId = set.defaultRoleId ?? before.defaultRoleId;
    const defaultWorkspaceRole = set.defaultWorkspaceRole ?? before.defaultWorkspaceRole;
    refuseAbove(own, { defaultRoleId, defaultWorkspaceRole, groupMappings }, 'identity_provider:update');
    return { authority: own };
  }

  /** Of several that claim a domain at once, one gets it; the others get the same answer as later ones. */
  async #unique(provider: ProviderKey, domains: readonly string[], work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (brokenUnique(error)) await refuseTaken(this.#deps.sql, provider, domains);
      throw error;
    }
  }
}

const CLIENT_SECRET = ['input', 'oidcConfig', 'clientSecretRef'];

/** Which secret goes where. */
type Destination = Pick<Columns<'identity_providers'>, 'oidcClientSecretRef' | 'oidcDiscoveryUrl'>;

const destinationIn = ({ clientSecretRef, discoveryUrl }: OidcConfig): Destination => ({
  oidcClientSecretRef: clientSecretRef ?? null,
  oidcDiscoveryUrl: discoveryUrl,
});

/** Whether another secret is sent, or to another address: whoever decides that could read it there. */
const sendsElse = (before: Destination | null, after: Destination): boolean =>
  before?.oidcClientSecretRef !== after.oidcClientSecretRef || before?.oidcDiscoveryUrl !== after.oidcDiscoveryUrl;

type ProviderKey = Pick<ProviderRow, 'id' | 'orgId'>;

/** The caller's role in the organization now. It reads the row: the role may just have changed. */
async function ownRole(tx: Tx, { principal: { userId } }: Caller, orgId: string): Promise<Role> {
  const [own] = await tx.query<{ role: string }>(
    statement`select role from organization_members where org_id = ${orgId} and user_id = ${userId}`,
  );
  const role = own ? asRole(own.role) : null;
  if (!role || !atLeast(role, 'admin')) throw forbidden('identity_provider:update');
  return role;
}

/** Nobody grants a role above their own, nor changes who gets it. @throws FORBIDDEN */
function refuseAbove(
  own: Role,
  {
    defaultRoleId,
    defaultWorkspaceRole,
    groupMappings,
  }: { defaultRoleId: string; defaultWorkspaceRole: string; groupMappings: readonly GroupMapping[] },
  permission: Permission,
): void {
  const highest = groupMappings.reduce<Role>(
    (role, mapping) => higherRole(role, mapping.roleId)!,
    higherRole(asRole(defaultRoleId), asRole(defaultWorkspaceRole))!,
  );
  if (!atLeast(own, highest))
    throw forbidden(permission, `The provider grants the role '${highest}', which is above your own.`);
}

/** @throws InputError at each workspace that the organization does not have */
async function demandWorkspaces(
  tx: Tx,
  orgId: string,
  given: readonly { workspaceId?: string | null | undefined; path: (string | number)[] }[],
): Promise<void> {
  const wanted = [...new Set(given.flatMap(({ workspaceId }) => workspaceId ?? []))];
  if (wanted.length === 0) return;
  const found = await tx.query<{ id: string }>(statement`
    select id from workspaces where org_id = ${orgId} and id = any(${wanted}::text[]) and deleted_at is null`);
  const known = new Set(found.map(({ id }) => id));
  const issues = given.flatMap(({ workspaceId, path }) =>
    workspaceId && !known.has(workspaceId)
      ? [valueIssue(path, `there is no workspace '${workspaceId}' in this organization`)]
      : [],
  );
  if (issues.length > 0) throw new InputError(issues);
}

/** Makes these the domains of a provider. The proof of one that was its own before stays. */
async function claim(tx: Tx, provider: ProviderKey, domains: readonly string[]): Promise<void> {
  const { id, orgId } = provider;
  tx.write(statement`delete from identity_provider_domains
    where identity_provider_id = ${id} and domain <> all(${domains}::text[])`);
  if (domains.length === 0) return;
  // nobody signs in to an organization that is deleted
  tx.write(statement`delete from identity_provider_domains d using organizations o
    where d.domain = any(${domains}::text[]) and o.id = d.org_id and o.deleted_at is not null`);
  await refuseTaken(tx, provider, domains);
  tx.write(statement`insert into identity_provider_domains (domain, org_id, identity_provider_id)
    select d.domain, ${orgId}, ${id} from unnest(${domains}::text[]) d (domain)
    where not exists (select from identity_provider_domains x
      where x.domain = d.domain and x.identity_provider_id = ${id})
    order by d.domain`);
}

/**
 * Whose provider it is is told only to its own organization.
 * @throws RESOURCE_ALREADY_EXISTS for the first domain that another provider has
 */
async function refuseTaken(db: QueryRunner, { id, orgId }: ProviderKey, domains: readonly string[]): Promise<void> {
  const [taken] = await db.query<{ domain: string; owner: string | null }>(statement`
    select domain, case when org_id = ${orgId} then identity_provider_id end as owner from identity_provider_domains
    where domain = any(${domains}::text[]) and identity_provider_id <> ${id} order by domain limit 1`);
  if (taken) throw alreadyExists('identity_provider', 'verified_domains', taken.domain, taken.owner);
}
