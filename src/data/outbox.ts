import type { Caller } from '../access/caller.ts';
import { newId } from '../core/ids.ts';
import type { Place } from '../core/place.ts';
import type { EventType, ResourceWord } from '../core/resources.ts';
import { bulkInsert } from './bulk-insert.ts';
import type { Write } from './writes.ts';

/**
 * An event as a service emits it (defaults §10). Its place decides who receives it: a token that is restricted to a
 * namespace, an environment or an app receives no events of others.
 */
export interface EventEntry extends Place {
  type: EventType;
  orgId: string;
  workspaceId?: string | null;
  resourceType: ResourceWord;
  resourceId: string;
  data?: Record<string, unknown>;
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
  e.namespace_id as "namespaceId", e.environment_id as "environmentId", e.app_id as "appId", e.type, e.actor,
  e.resource_type as "resourceType", e.resource_id as "resourceId", e.data, e.trace_id as "traceId", e.timestamp`;

const columns = {
  id: 'text',
  org_id: 'text',
  workspace_id: 'text',
  namespace_id: 'text',
  environment_id: 'text',
  app_id: 'text',
  type: 'text',
  actor: 'jsonb',
  resource_type: 'text',
  resource_id: 'text',
  data: 'jsonb',
  trace_id: 'text',
} as const;

export type EventRow = Record<keyof typeof columns, unknown>;

/** The outbox row of an event. */
export function eventRow(caller: Caller, event: EventEntry): EventRow {
  const { request } = caller;
  const who = caller.principal ?? caller.signedInAs;
  return {
    id: newId('event'),
    org_id: event.orgId,
    workspace_id: event.workspaceId ?? null,
    namespace_id: event.namespaceId ?? null,
    environment_id: event.environmentId ?? null,
    app_id: event.appId ?? null,
    type: event.type,
    actor: JSON.stringify({
      principal_type: caller.principal?.type ?? (who ? 'user' : 'system'),
      principal_id: caller.principal?.token?.id ?? who?.userId ?? null,
      username: who?.username ?? null,
    }),
    resource_type: event.resourceType,
    resource_id: event.resourceId,
    data: JSON.stringify(event.data ?? {}),
    trace_id: request.traceId,
  };
}

const insert = bulkInsert('events', columns);

/** Events, written as a part of the change that they describe. */
export const writeEvents = (rows: readonly EventRow[]): Write => insert.write(rows);
