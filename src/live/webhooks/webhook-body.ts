import type { StreamEvent } from '../../data/outbox.ts';

/** What is sent of an event: the same as on the stream of REST. */
export const bodyOf = (event: Omit<StreamEvent, 'xid' | 'seq' | 'recipientId'>): string =>
  JSON.stringify({
    event_id: event.id,
    type: event.type,
    org_id: event.orgId,
    workspace_id: event.workspaceId,
    actor: event.actor,
    resource_type: event.resourceType,
    resource_id: event.resourceId,
    data: event.data,
    timestamp: event.timestamp.toISOString(),
    trace_id: event.traceId,
  });
