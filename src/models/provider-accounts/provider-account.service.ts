import type { ServiceDeps } from '../../access/service-deps.ts';
import { type Given, withoutNull } from '../../data/given.ts';
import type { PageArgs } from '../../data/page.ts';
import type { Words } from '../../data/paging.ts';
import { deleteRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { ProviderAccount as AccountRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, forbidden, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { SecretReads } from '../../vault/secrets/secret.reads.ts';
import type { Resolution, Vault } from '../../vault/secrets/vault.ts';
import { emitModelStatusChanges } from '../models/model-status-changes.ts';
import {
  type AccountFilters,
  accounts,
  defaultRateLimits,
  type ProviderAccount,
  type QuotaPolicy,
  type RateLimitPolicy,
} from './provider-account.reads.ts';

export interface UpdateProviderAccount extends Given<AccountRow, Changeable> {
  /** Replaces all limits. `null` removes them. */
  quotaPolicy?: Given<QuotaPolicy, 'maxTokensPerMonth' | 'maxRequestsPerMonth'> | null;
  /** Replaces the whole policy. `null` and omitted fields restore the defaults. */
  rateLimitPolicy?: Given<RateLimitPolicy, keyof RateLimitPolicy> | null;
}

type Changeable =
  | Words<'name providerType credentialsRef'>
  | Words<'description region dataResidency baseUrl routingMode bridgeId bridgeEndpointName enabled tags'>;

type CreateProviderAccount = UpdateProviderAccount & Pick<AccountRow, 'name' | 'providerType' | 'credentialsRef'>;

type AccountDeps = ServiceDeps & { vault: Vault; secretReads: SecretReads };

/** What decides whether the service sends the credentials of an account, and where to. */
type Destination = Pick<AccountRow, 'providerType' | 'credentialsRef' | 'baseUrl'>;

/** Accounts at model providers. They store references to credentials, never the credentials. */
export class ProviderAccountService {
  readonly secretReferences = [
    { resource: 'provider_account', table: 'provider_accounts', column: 'credentials_ref' },
  ] as const;
  readonly reads: Reads<ProviderAccount, OrganizationPlace, PageArgs & AccountFilters>;
  readonly #deps: AccountDeps;

  constructor(deps: AccountDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, accounts);
  }

  /**
   * Creates an account. It is `pending` until the first request through it succeeds.
   * @throws InputError if the credentials name a secret that the organization does not have, or if the bridge is
   * missing; FORBIDDEN `secret:reveal` for a secret that the service would send to `baseUrl`
   */
  async create(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    input: CreateProviderAccount,
  ): Promise<ProviderAccount> {
    const { orgId } = place;
    const id = newId('provider_account');
    const routingMode = input.routingMode ?? 'direct';
    demandBridge(routingMode, input.bridgeId ?? null);
    demandBase(input.baseUrl);
    const shown = await this.#revealed(caller, orgId, { ...input, baseUrl: input.baseUrl ?? null });
    await this.#deps.changes.run(caller, async (tx) => {
      const found = await this.#deps.vault.demandReference(tx, orgId, input.credentialsRef, CREDENTIALS);
      if (input.baseUrl) demandSame(found, shown);
      tx.insert('provider_accounts', {
        id,
        orgId,
        name: input.name,
        description: input.description ?? null,
        providerType: input.providerType,
        region: input.region ?? null,
        dataResidency: input.dataResidency ?? null,
        credentialsRef: input.credentialsRef,
        baseUrl: input.baseUrl ?? null,
        routingMode,
        bridgeId: input.bridgeId ?? null,
        bridgeEndpointName: input.bridgeEndpointName ?? null,
        enabled: input.enabled ?? true,
        tags: input.tags ?? {},
        maxTokensPerMonth: quotaOf(input.quotaPolicy?.maxTokensPerMonth),
        maxRequestsPerMonth: quotaOf(input.quotaPolicy?.maxRequestsPerMonth),
        rateLimitPolicy: rateLimitsOf(input.rateLimitPolicy),
        createdBy: caller.principal.userId,
      });
      recordChange(tx, 'create', 'provider_account', { id, orgId }, { provider_type: input.providerType });
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * Changes the given fields. New credentials set an account in `error` back to `pending`.
   * @throws RESOURCE_NOT_FOUND, InputError and FORBIDDEN like {@link create}
   */
  async update(
    caller: Caller,
    place: Checked<OrganizationPlace>,
    id: string,
    input: UpdateProviderAccount,
  ): Promise<ProviderAccount> {
    demandBase(input.baseUrl);
    const isSteered = STEERS.some((field) => input[field] !== undefined);
    const shown = isSteered
      ? await this.#revealed(caller, place.orgId, after(await this.reads.get(noCache, place, id), input))
      : null;
    await this.#deps.changes.run(caller, async (tx) => {
      const missing = () => notFound('provider_account', id);
      // This lock lets others add new targets at the account meanwhile.
      const account = await tx.lock('provider_accounts', { id, orgId: place.orgId }, 'no key update', missing);
      await tx.expectVersion({ table: 'provider_accounts', key: { id } });
      const { routingMode, bridgeId } = { ...account, ...withoutNull({ routingMode: input.routingMode }) };
      demandBridge(routingMode, input.bridgeId === undefined ? bridgeId : input.bridgeId);
      if (input.credentialsRef)
        await this.#deps.vault.demandReference(tx, place.orgId, input.credentialsRef, CREDENTIALS);
      const { credentialsRef, baseUrl } = after(account, input);
      if (isSteered && baseUrl) demandSame(await this.#deps.vault.resolve(tx, place.orgId, credentialsRef), shown);
      const hasNewCredentials = Boolean(input.credentialsRef) && input.credentialsRef !== account.credentialsRef;
      const { quotaPolicy, rateLimitPolicy } = input;
      const set: Columns<'provider_accounts'> = {
        name: input.name ?? undefined,
        description: input.description,
        providerType: input.providerType ?? undefined,
        region: input.region,
        dataResidency: input.dataResidency,
        credentialsRef: input.credentialsRef ?? undefined,
        baseUrl: input.baseUrl,
        routingMode: input.routingMode ?? undefined,
        bridgeId: input.bridgeId,
        bridgeEndpointName: input.bridgeEndpointName,
        enabled: input.enabled ?? undefined,
        tags: input.tags ?? undefined,
        ...(quotaPolicy === undefined
          ? {}
          : {
              maxTokensPerMonth: quotaOf(quotaPolicy?.maxTokensPerMonth),
              maxRequestsPerMonth: quotaOf(quotaPolicy?.maxRequestsPerMonth),
            }),
        ...(rateLimitPolicy === undefined ? {} : { rateLimitPolicy: rateLimitsOf(rateLimitPolicy) }),
        ...(hasNewCredentials ? { authFailures: 0 } : {}),
        ...(hasNewCredentials && account.status === 'error' ? { status: 'pending', statusReason: null } : {}),
      };
      await emitModelStatusChanges(tx, account, async () => tx.update('provider_accounts', { id }, set));
      recordChange(tx, 'update', 'provider_account', account, { fields: Object.keys(input) });
    });
    return this.reads.get(noCache, place, id);
  }

  /**
   * A user who decides where the service sends a secret could read it there: only users who may see its value decide.
   * @returns the secret that would be sent, if any
   * @throws FORBIDDEN `secret:reveal`, RESOURCE_NOT_FOUND
   */
  async #revealed(caller: Caller, orgId: string, { credentialsRef, baseUrl }: Destination): Promise<string | null> {
    if (!baseUrl) return null;
    const { sql, vault, secretReads } = this.#deps;
    const found = await vault.resolve(sql, orgId, credentialsRef);
    const secret = found.kind === 'secret' ? await secretReads.all.findInTenant(noCache, orgId, found.id) : null;
    if (!secret) return null;
    await secretReads.demand(caller, secret, 'secret:reveal');
    return secret.id;
  }

  /** @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT `in_use` with the models that have a target at the account */
  async delete(caller: Caller, { orgId }: Checked<OrganizationPlace>, id: string): Promise<Deleted<OrganizationPlace>> {
    const rules = async (tx: Tx) => {
      // Writing a target locks its account, so a new target and a deletion at the same time wait for each other.
      await tx.lock('provider_accounts', { id, orgId }, 'update', () => notFound('provider_account', id));
      const models = await tx.query<{ id: string }>(statement`
        select distinct m.logical_model_id as id from logical_models m join model_targets t on t.model_id = m.id
        where t.provider_account_id = ${id} order by 1 limit ${MAX_REFERENCES}`);
      if (models.length > 0) throw inUse(id, models);
    };
    return deleteRow(
      this.#deps,
      caller,
      { kind: 'provider_account', from: 'provider_accounts' },
      { id, orgId },
      { rules },
    );
  }
}

const MAX_REFERENCES = 100;
const CREDENTIALS = ['input', 'credentialsRef'];

const inUse = (id: string, models: readonly { id: string }[]) =>
  conflict(
    'provider_account',
    id,
    'in_use',
    `The provider account '${id}' is used by targets of models. Remove those targets first.`,
    { references: models.map((model) => ({ resource_type: 'model', resource_id: model.id })) },
  );

function demandBridge(routingMode: string, bridgeId: string | null): void {
  if (routingMode === 'bridge' && !bridgeId)
    throw invalidInput(['input', 'bridgeId'], "it is required where the routing mode is 'bridge'");
}

/** What is appended to the path must be what is asked, and a URL is shown to everybody who reads the account. */
/** Fields of which each decides where credentials go. */
const STEERS = ['providerType', 'credentialsRef', 'baseUrl'] as const;

const after = (account: Destination, input: UpdateProviderAccount): Destination => ({
  providerType: input.providerType ?? account.providerType,
  credentialsRef: input.credentialsRef ?? account.credentialsRef,
  baseUrl: input.baseUrl === undefined ? account.baseUrl : input.baseUrl,
});

/** Between the check and the change, the reference may have come to mean another secret. */
function demandSame(found: Resolution, shown: string | null): void {
  if (found.kind === 'secret' && found.id !== shown)
    throw forbidden('secret:reveal', 'The account would send a secret whose value you may not see.');
}

function demandBase(baseUrl: string | null | undefined): void {
  const url = baseUrl && URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url && (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash))
    throw invalidInput(
      ['input', 'baseUrl'],
      'it must be an http(s) URL without user name, password, query and fragment',
    );
}

const quotaOf = (limit: number | null | undefined): bigint | null => (typeof limit === 'number' ? BigInt(limit) : null);

const rateLimitsOf = (input: UpdateProviderAccount['rateLimitPolicy']) => ({
  ...defaultRateLimits,
  ...withoutNull(input),
});
