import { readPermissionOf } from '../../access/permissions.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import { columnsOf } from '../../data/paging.ts';
import { deleteRow } from '../../data/plain-changes.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Columns } from '../../data/tables.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { Prisma, type Webhook as WebhookRow } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, forbidden, InputError, invalidInput, notFound, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { isLiveWorkspace } from '../../tenancy/views.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import type { SecretReads } from '../../vault/secrets/secret.reads.ts';
import type { Resolution, Vault } from '../../vault/secrets/vault.ts';
import { refuseApplications } from '../sending/refuse-applications.ts';
import { MAX_WEBHOOKS, typeProblem, wordsOf } from './webhook.words.ts';
import { FIRST_OF_EACH } from './webhook-deliveries.ts';
import { keysOf, newSecret, rotatedKeys } from './webhook-signing.ts';

/** A webhook as everybody sees it who may read it. */
export type Webhook = Omit<WebhookRow, 'positionSeq' | 'begunSnapshot' | 'begunXid'>;

/** A webhook and its secret: the only time that it is shown. */
export interface IssuedWebhook {
  webhook: Webhook;
  secret: string;
}

interface WebhookFields {
  description?: string | null;
  headersRef?: string | null;
  isEnabled?: boolean | null;
}

export interface NewWebhook extends WebhookFields {
  name: string;
  url: string;
  eventTypes: readonly string[];
  workspaceId?: string | null;
}

export interface ChangedWebhook extends WebhookFields {
  name?: string | null;
  url?: string | null;
  eventTypes?: readonly string[] | null;
}

/** Whether a column says where a webhook reads: nobody is shown it. */
const isOfReading = (name: string): boolean => ['positionSeq', 'begunSnapshot', 'begunXid'].includes(name);

const webhooks = {
  kind: 'webhook',
  from: 'webhooks',
  columns: columnsOf(Object.values(Prisma.WebhookScalarFieldEnum).filter((name) => !isOfReading(name))),
  below: ['orgId'],
} as const;

export interface WebhookDeps extends ServiceDeps {
  vault: Vault;
  credentials: Credentials;
  secretReads: SecretReads;
  outbound: Pick<Outbound, 'refusalOf'>;
  /** Called when something may have become due. */
  wake: () => void;
}

/** What decides what goes where. */
type DeliveryTerms = Pick<WebhookRow, 'workspaceId' | 'eventTypes' | 'headersRef'>;

/**
 * Webhooks of an organization: of its own events, or of those of one workspace. A webhook acts for the user who decided
 * last what goes where, and receives what this user may read. Whoever decides must therefore be allowed to read it.
 */
export class WebhookService {
  readonly secretReferences = [{ resource: 'webhook', table: 'webhooks', column: 'headers_ref' }] as const;
  readonly reads: Reads<Webhook, OrganizationPlace>;
  readonly #deps: WebhookDeps;

  constructor(deps: WebhookDeps) {
    this.#deps = deps;
    this.reads = new Reads(deps, webhooks);
  }

  /**
   * @throws InputError for a URL that is not called, types that do not come and a secret that is not there;
   * FORBIDDEN with the permission to read what the types are about, `secret:reveal`, or `granted_application`;
   * RESOURCE_NOT_FOUND `workspace`; RESOURCE_CONFLICT `limit_reached`
   */
  async create(caller: Caller, { orgId }: Checked<OrganizationPlace>, input: NewWebhook): Promise<IssuedWebhook> {
    refuseApplications(caller, 'webhook:create');
    const { url, eventTypes, workspaceId = null, headersRef = null } = input;
    const destination = { workspaceId, eventTypes: [...eventTypes], headersRef };
    if (workspaceId !== null) await this.#deps.access.requireWorkspace(caller, orgId, workspaceId, 'sync:subscribe');
    this.#demandInput(workspaceId, { url, eventTypes });
    const shown = await this.#demandRights(caller, orgId, destination);
    const secret = newSecret();
    const webhook = await this.#deps.changes.run(caller, async (tx) => {
      await demandRoom(tx, orgId, workspaceId);
      await this.#deps.credentials.prepare(tx);
      if (headersRef !== null)
        demandSame(await this.#deps.vault.demandReference(tx, orgId, headersRef, HEADERS), shown);
      const id = newId('webhook');
      const row = await tx.written(
        tx.create('webhooks', {
          id,
          orgId,
          ...destination,
          name: input.name,
          description: input.description ?? null,
          url,
          isEnabled: input.isEnabled ?? true,
          actsFor: caller.principal.userId,
          createdBy: caller.principal.userId,
        }),
      );
      await this.#deps.credentials.put(tx, orgId, { webhookId: id }, keysOf(secret), { setBy: null });
      recordChange(tx, 'create', 'webhook', { id, orgId });
      return row;
    });
    this.#deps.wake();
    return { webhook, secret };
  }

  /**
   * Changes the given fields; omitted ones stay. Who sets the URL, the types or the headers, or enables it, is whom it
   * acts for from then on.
   * @throws RESOURCE_NOT_FOUND, and as {@link create}
   */
  async update(caller: Caller, place: Checked<OrganizationPlace>, id: string, input: ChangedWebhook): Promise<Webhook> {
    const { orgId } = place;
    const isSteered = STEERS.some((field) => input[field] !== undefined) || input.isEnabled === true;
    if (isSteered) refuseApplications(caller, 'webhook:update');
    const before = await this.reads.get(noCache, place, id);
    this.#demandInput(before.workspaceId, input);
    const shown = isSteered ? await this.#demandRights(caller, orgId, await this.#whatFollows(before, input)) : null;
    const webhook = await this.#deps.changes.run(caller, async (tx) => {
      const held = await tx.lock('webhooks', { id, orgId }, 'no key update', () => notFound('webhook', id));
      await tx.expectVersion({ table: 'webhooks', key: { id, orgId } });
      const { headersRef, eventTypes } = after(held, input);
      // somebody else has changed what was checked
      if (isSteered && String(eventTypes) !== String(after(before, input).eventTypes)) throw changedMeanwhile(id);
      if (isSteered && headersRef !== null)
        demandSame(await this.#deps.vault.demandReference(tx, orgId, headersRef, HEADERS), shown);
      // the resource is the organization's, whatever events it receives
      if (input.isEnabled === true && !held.isEnabled) await tx.query({ text: FIRST_OF_EACH, values: [id] });
      recordChange(tx, 'update', 'webhook', { id, orgId }, { fields: Object.keys(input) });
      return tx.change('webhooks', { id, orgId }, setOf(input, isSteered ? caller : null), () =>
        notFound('webhook', id),
      );
    });
    this.#deps.wake();
    return webhook;
  }

  /**
   * Gives a webhook a new secret. The old one signs as well for a day.
   * @throws RESOURCE_NOT_FOUND; FORBIDDEN `granted_application`: who knows the secret can sign as the service
   */
  async rotateSecret(caller: Caller, { orgId }: Checked<OrganizationPlace>, id: string): Promise<IssuedWebhook> {
    refuseApplications(caller, 'webhook:update');
    const secret = newSecret();
    const webhook = await this.#deps.changes.run(caller, async (tx) => {
      await tx.lock('webhooks', { id, orgId }, 'no key update', () => notFound('webhook', id));
      await tx.expectVersion({ table: 'webhooks', key: { id, orgId } });
      const { credentials } = this.#deps;
      const stored = await credentials.open(tx, orgId, { webhookId: id });
      await credentials.put(tx, orgId, { webhookId: id }, rotatedKeys(stored, secret), { setBy: null });
      recordChange(tx, 'update', 'webhook', { id, orgId }, { fields: ['secret'] });
      return tx.change('webhooks', { id, orgId }, { secretRotatedAt: new Date() }, () => notFound('webhook', id));
    });
    return { webhook, secret };
  }

  /** Deletes it with its log. What is under way may still arrive. @throws RESOURCE_NOT_FOUND */
  async delete(caller: Caller, place: Checked<OrganizationPlace>, id: string): Promise<Deleted<OrganizationPlace>> {
    return deleteRow(this.#deps, caller, webhooks, { id, ...place });
  }

  /** What goes to a changed webhook: also what waits already, and what its log can send again. */
  async #whatFollows(webhook: Webhook, input: ChangedWebhook): Promise<DeliveryTerms> {
    const { eventTypes, ...terms } = after(webhook, input);
    const logged = await this.#deps.sql.read<{ type: string }>(
      `select distinct d.event_type as type from webhook_deliveries d where d.org_id = $1 and d.webhook_id = $2`,
      [webhook.orgId, webhook.id],
    );
    return { ...terms, eventTypes: [...eventTypes, ...webhook.eventTypes, ...logged.map(({ type }) => type)] };
  }

  /** @throws InputError */
  #demandInput(workspaceId: string | null, { url, eventTypes }: Pick<ChangedWebhook, 'url' | 'eventTypes'>): void {
    const refusal = url ? this.#deps.outbound.refusalOf(url) : null;
    const issues = [
      ...(refusal ? [valueIssue(['input', 'url'], refusal.message)] : []),
      ...(eventTypes ?? []).flatMap((name, index) => {
        const problem = typeProblem(name, workspaceId !== null);
        return problem ? [valueIssue(['input', 'eventTypes', index], problem)] : [];
      }),
    ];
    if (issues.length > 0) throw new InputError(issues);
  }

  /**
   * A user who decides where events and secrets go could read them there.
   * @returns the secret that would be sent, if any
   * @throws FORBIDDEN with the permission to read it
   */
  async #demandRights(
    caller: Caller,
    orgId: string,
    { workspaceId, eventTypes, headersRef }: DeliveryTerms,
  ): Promise<string | null> {
    const { access, sql, vault, secretReads } = this.#deps;
    for (const word of wordsOf(eventTypes))
      if (!(await access.maySee(caller, word, { orgId, workspaceId })))
        throw forbidden(readPermissionOf(word) ?? `${word}:read`);
    if (headersRef === null) return null;
    const found = await vault.resolve(sql, orgId, headersRef);
    if (found.kind !== 'secret') throw invalidInput(HEADERS, found.kind === 'missing' ? found.why : NOT_A_SECRET);
    const secret = await secretReads.all.findInTenant(noCache, orgId, found.id);
    if (!secret) throw notFound('secret', found.id);
    await secretReads.demand(caller, secret, 'secret:reveal');
    return secret.id;
  }
}

const HEADERS = ['input', 'headersRef'];
const NOT_A_SECRET = "name a secret of the vault: 'sec_…', or 'secret://name'";
/** Fields of which each decides what goes where. */
const STEERS = ['url', 'eventTypes', 'headersRef'] as const;

const after = (webhook: DeliveryTerms, input: ChangedWebhook): DeliveryTerms => ({
  workspaceId: webhook.workspaceId,
  eventTypes: input.eventTypes ? [...input.eventTypes] : webhook.eventTypes,
  headersRef: input.headersRef === undefined ? webhook.headersRef : input.headersRef,
});

const setOf = (input: ChangedWebhook, decider: Caller | null): Columns<'webhooks'> => ({
  name: input.name ?? undefined,
  description: input.description,
  url: input.url ?? undefined,
  eventTypes: input.eventTypes ? [...input.eventTypes] : undefined,
  headersRef: input.headersRef,
  ...(decider && { actsFor: decider.principal.userId }),
  ...(typeof input.isEnabled === 'boolean' && {
    isEnabled: input.isEnabled,
    disabledReason: null,
    failingSince: null,
  }),
});

/** Between the check and the change, the reference may have come to mean another secret. */
function demandSame(found: Resolution, shown: string | null): void {
  if (found.kind !== 'secret' || found.id !== shown)
    throw forbidden('secret:reveal', 'The webhook would send a secret whose value you may not see.');
}

const changedMeanwhile = (id: string) =>
  conflict('webhook', id, 'changed', `The webhook '${id}' was changed at the same moment: read it again.`);

/** Webhooks of one organization are added one after the other. @throws RESOURCE_CONFLICT, RESOURCE_NOT_FOUND */
async function demandRoom(tx: Tx, orgId: string, workspaceId: string | null): Promise<void> {
  await tx.query(statement`select pg_advisory_xact_lock(hashtextextended(${`webhooks of ${orgId}`}, 0))`);
  const [found] = await tx.query<{ count: number; isThere: boolean }>({
    text: `select (select count(*)::int from webhooks w
        where w.org_id = $1 and coalesce(w.workspace_id, '') = coalesce($2, '')) as count,
      $2::text is null or ${isLiveWorkspace('$2')} as "isThere"`,
    values: [orgId, workspaceId],
  });
  if (workspaceId !== null && !found!.isThere) throw notFound('workspace', workspaceId);
  if (found!.count < MAX_WEBHOOKS) return;
  const [kind, id] = workspaceId === null ? (['organization', orgId] as const) : (['workspace', workspaceId] as const);
  throw conflict(kind, id, 'limit_reached', `There are at most ${MAX_WEBHOOKS} webhooks here: delete one first.`, {
    limit: MAX_WEBHOOKS,
  });
}
