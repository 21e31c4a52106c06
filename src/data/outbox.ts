import type { AnyCaller } from '../kernel/caller.ts';
import { newId } from '../kernel/ids.ts';
import type { EventType } from '../kernel/resources.ts';
import { bulkInsert } from './bulk-insert.ts';
import type { Occasion } from './occasions.ts';
import type { Write } from './writes.ts';

/**
 * An event as a service emits it (defaults §10). Its place decides who receives it: a token that is restricted to a
 * namespace, an environment or an app receives no events of others.
 */
export interface EventEntry extends Occasion {
  type: EventType;
  orgId: string;
  /** The only user who receives it. Default: everybody who may read its resource. */
  recipientId?: string;
}

/** An event as it is stored in the outbox and sent on streams. */
export interface StreamEvent {
  /** Its transaction and number, which together are its position in the order of commits. */
  xid: string;
  seq: string;
  id: string;
  orgId: string;
  workspaceId: string | null;
  namespaceId: string | null;
  environmentId: string | null;
  appId: string | null;
  /** The only user who receives it; `null` for everybody who may read its resource. */
  recipientId: string | null;
  type: string;
  actor: { principal_type: string; principal_id: string | null; username: string | null };
  resourceType: string;
  resourceId: string;
  data: Record<string, unknown>;
  traceId: string | null;
  timestamp: Date;
}

/**
 * The columns of an event `e`. `order by` needs the table's name: without it, it would sort these texts, where 10 comes
 * before 9.
 */
export const EVENT_COLUMNS = `e.seq::text, e.xid::text, e.id, e.org_id as "orgId", e.workspace_id as "workspaceId",
  e.namespace_id as "namespaceId", e.environment_id as "environmentId", e.app_id as "appId",
  e.recipient_id as "recipientId", e.type, e.actor, e.resource_type as "resourceType", e.resource_id as "resourceId",
  e.data, e.trace_id as "traceId", e.timestamp`;

const columns = {
  id: 'text',
  org_id: 'text',
  workspace_id: 'text',
  namespace_id: 'text',
  environment_id: 'text',
  app_id: 'text',
  recipient_id: 'text',
  type: 'text',
  actor: 'jsonb',
  resource_type: 'text',
  resource_id: 'text',
  data: 'jsonb',
  trace_id: 'text',
} as const;

export type EventRow = Record<keyof typeof columns, unknown>;

/** Who causes the events of a caller. */
export function eventActor({ principal, signedInAs, scimTokenId }: AnyCaller): StreamEvent['actor'] {
  if (scimTokenId !== undefined) return { principal_type: 'system', principal_id: scimTokenId, username: 'SCIM' };
  const who = principal ?? signedInAs;
  return {
    principal_type: principal?.type ?? (who ? 'user' : 'system'),
    principal_id: principal?.token?.id ?? who?.userId ?? null,
    username: who?.username ?? null,
  };
}

/** The outbox row of an event. */
export function eventRow(caller: AnyCaller, event: EventEntry): EventRow {
  const { request } = caller;
  return {
    id: newId('event'),
    org_id: event.orgId,
    workspace_id: event.workspaceId ?? null,
    namespace_id: event.namespaceId ?? null,
    environment_id: event.environmentId ?? null,
    app_id: event.appId ?? null,
    recipient_id: event.recipientId ?? null,
    type: event.type,
    actor: JSON.stringify(eventActor(caller)),
    resource_type: event.resourceType,
    resource_id: event.resourceId,
    data: JSON.stringify(event.data ?? {}),
    trace_id: request.traceId,
  };
}

const insert = bulkInsert('events', columns);

/** Events, written as a part of the change that they describe. */
export const writeEvents = (rows: readonly EventRow[]): Write => insert.write(rows);
