import type { ServiceDeps } from '../../access/service-deps.ts';
import { eventActor } from '../../data/outbox.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { noCache } from '../../data/request-cache.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { type WebhookDelivery as DeliveryRow, Prisma, type Webhook } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { Checked, OrganizationPlace } from '../../kernel/checked-place.ts';
import { conflict, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { isResourceWord } from '../../kernel/resources.ts';
import { type StoredAttempt, withoutAnswers } from '../sending/attempts.ts';
import { LOG_DAYS, MAX_REDELIVERED, TEST_TYPE } from './webhook.words.ts';
import { bodyOf } from './webhook-body.ts';

/** A delivery as the log shows it. */
export type WebhookDelivery = Omit<DeliveryRow, 'place'>;

/** The place of the deliveries of a webhook. */
export interface WebhookPlace extends OrganizationPlace {
  webhookId: string;
}

export interface DeliveryArgs extends PageArgs {
  status?: string | null;
}

/** Which deliveries are sent again. */
export interface Redelivery {
  since: Date;
  until?: Date | null;
  onlyFailed?: boolean | null;
}

const deliveries = {
  kind: 'webhook_delivery',
  from: 'webhook_deliveries',
  columns: columnsOf(Object.values(Prisma.WebhookDeliveryScalarFieldEnum).filter((name) => name !== 'place')),
  below: ['orgId', 'webhookId'],
  filters: ({ status }: DeliveryArgs) => ({ 't.status = ?': status }),
} as const;

// at the end of the queue: its order is that of what is sent from now on
const AGAIN = `update webhook_deliveries d set status = 'pending', tries = 0, due_at = null, finished_at = null,
    queued_at = now(), place = r.place
  from (select o.id, nextval('webhook_deliveries_place_seq') as place from (
    select c.id from webhook_deliveries c where c.webhook_id = $1 and c.status <> 'pending' and $2
    order by c.place limit ${MAX_REDELIVERED}) o) r
  where d.id = r.id returning d.resource_id as "resourceId"`;
const ONE = AGAIN.replace('$2', 'c.id = $2');
const MANY = AGAIN.replace(
  '$2',
  `c.created_at >= $2::timestamptz and c.created_at < coalesce($3::timestamptz, 'infinity')
    and ($4::bool is not true or c.status = 'failed')`,
);

const FIRST = `update webhook_deliveries d set due_at = now()
  from unnest($2::text[]) r(resource_id) cross join lateral (
    select p.id from webhook_deliveries p
    where p.webhook_id = $1 and p.status = 'pending' and p.resource_id = r.resource_id order by p.place limit 1) head
  where d.id = head.id and d.due_at is null`;

/** What is first of its resource has its turn: what was before it may have gone while the webhook was disabled. */
export const FIRST_OF_EACH = `update webhook_deliveries d set due_at = now() where d.due_at is null and d.id in (
    select distinct on (p.resource_id) p.id from webhook_deliveries p
    where p.webhook_id = $1 and p.status = 'pending' order by p.resource_id, p.place)`;

/** The log of what was sent, what is sent again, and tests. */
export class WebhookDeliveries {
  readonly retention = [
    // whoever enables a webhook meanwhile holds its row, so its queues are not changed behind the first of each
    `delete from webhook_deliveries where created_at < now() - interval '${LOG_DAYS} days' and (status <> 'pending'
      or webhook_id in (select h.id from webhooks h where not h.is_enabled for share skip locked))`,
  ];
  readonly reads: Reads<WebhookDelivery, WebhookPlace, DeliveryArgs>;
  readonly #deps: ServiceDeps & { wake: () => void };

  constructor(deps: ServiceDeps & { wake: () => void }) {
    this.#deps = deps;
    this.reads = new Reads(deps, deliveries);
  }

  /** What was sent, for callers who may read what it is about. */
  async body(caller: Caller, { resourceType, orgId, body }: WebhookDelivery): Promise<string | null> {
    if (!isResourceWord(resourceType)) return null;
    const { workspace_id: workspaceId } = JSON.parse(body) as { workspace_id: string | null };
    return (await this.#deps.access.maySee(caller, resourceType, { orgId, workspaceId })) ? body : null;
  }

  /** The attempts, the oldest first. What was answered is for callers who may read what was sent. */
  async attempts(caller: Caller, delivery: WebhookDelivery): Promise<StoredAttempt[]> {
    const made = delivery.attempts as unknown as StoredAttempt[];
    return made.length === 0 || (await this.body(caller, delivery)) !== null ? made : withoutAnswers(made);
  }

  /**
   * Puts a delivery that is over into the queue again. One that still waits stays as it is.
   * @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT for a disabled webhook
   */
  async redeliver(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    webhookId: string,
    id: string,
  ): Promise<WebhookDelivery> {
    await this.#again(caller, { orgId, webhookId }, { text: ONE, values: [webhookId, id] }, id);
    const delivery = await this.reads.findInTenant(noCache, orgId, id);
    if (!delivery) throw notFound('webhook_delivery', id);
    return delivery;
  }

  /**
   * Puts deliveries that are over into the queue again: at most 10,000, the oldest first.
   * @returns how many @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT for a disabled webhook, InputError
   */
  async redeliverMany(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    webhookId: string,
    { since, until, onlyFailed }: Redelivery,
  ): Promise<number> {
    if (until && until < since) throw invalidInput(['input', 'until'], 'the end is before the start');
    const values = [webhookId, since, until ?? null, onlyFailed ?? null];
    return this.#again(caller, { orgId, webhookId }, { text: MANY, values });
  }

  /** Sends a test, once. @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT for a disabled webhook */
  async test(caller: Caller, { orgId }: Checked<OrganizationPlace>, webhookId: string): Promise<WebhookDelivery> {
    const sent = await this.#deps.changes.run(caller, async (tx) => {
      const { workspaceId } = await lockEnabled(tx, { orgId, webhookId });
      const event = testEvent(caller, { orgId, workspaceId, webhookId });
      record(tx, { orgId, webhookId }, { test: event.id });
      return tx.create('webhook_deliveries', {
        id: newId('webhook_delivery'),
        orgId,
        webhookId,
        eventId: event.id,
        eventType: event.type,
        resourceType: event.resourceType,
        // tests wait for nothing
        resourceId: event.id,
        body: bodyOf({ ...event, resourceId: webhookId }),
        maxTries: 1,
        dueAt: new Date(),
      });
    });
    this.#deps.wake();
    return sent;
  }

  async #again(
    caller: Caller,
    place: WebhookPlace,
    { text, values }: { text: string; values: unknown[] },
    deliveryId?: string,
  ): Promise<number> {
    const count = await this.#deps.changes.run(caller, async (tx) => {
      await lockEnabled(tx, place);
      if (deliveryId !== undefined) await demandDelivery(tx, place, deliveryId);
      const again = await tx.query<{ resourceId: string }>({ text, values });
      const resources = [...new Set(again.map(({ resourceId }) => resourceId))];
      if (resources.length > 0) await tx.query({ text: FIRST, values: [place.webhookId, resources] });
      record(tx, place, { redelivered: again.length }, deliveryId);
      return again.length;
    });
    this.#deps.wake();
    return count;
  }
}

/** @throws RESOURCE_NOT_FOUND, RESOURCE_CONFLICT */
async function lockEnabled(tx: Tx, { orgId, webhookId: id }: WebhookPlace): Promise<Webhook> {
  const webhook = await tx.lock('webhooks', { id, orgId }, 'no key update', () => notFound('webhook', id));
  if (!webhook.isEnabled)
    throw conflict('webhook', id, 'invalid_status', `The webhook '${id}' is disabled: enable it first.`);
  return webhook;
}

/** @throws RESOURCE_NOT_FOUND */
async function demandDelivery(tx: Tx, { orgId, webhookId }: WebhookPlace, id: string): Promise<void> {
  const found = await tx.query(statement`select from webhook_deliveries
    where org_id = ${orgId} and webhook_id = ${webhookId} and id = ${id}`);
  if (found.length === 0) throw notFound('webhook_delivery', id);
}

function record(
  tx: Tx,
  { orgId, webhookId }: WebhookPlace,
  metadata: Record<string, unknown>,
  deliveryId?: string,
): void {
  const about =
    deliveryId === undefined
      ? ({ resourceType: 'webhook', resourceId: webhookId } as const)
      : ({ resourceType: 'webhook_delivery', resourceId: deliveryId } as const);
  tx.audit({ action: 'update', ...about, orgId, metadata });
}

const testEvent = (caller: Caller, place: { orgId: string; workspaceId: string | null; webhookId: string }) => ({
  id: newId('event'),
  orgId: place.orgId,
  workspaceId: place.workspaceId,
  namespaceId: null,
  environmentId: null,
  appId: null,
  type: TEST_TYPE,
  actor: eventActor(caller),
  resourceType: 'webhook',
  resourceId: place.webhookId,
  data: {},
  traceId: caller.request.traceId,
  timestamp: new Date(),
});
