import { isLiveOrganization, isLiveWorkspace } from '../../tenancy/views.ts';
import { waitAfter } from '../sending/attempts.ts';
import type { SendChannel } from '../sending/channel.ts';
import { TEST_TYPE } from './webhook.words.ts';

const hasEvents = (place: string): string => `exists (select from events e where e.org_id = h.org_id
  and ${place} and (e.xid, e.seq) > (h.position_xid, h.position_seq)
  and e.xid < pg_snapshot_xmin(pg_current_snapshot()))`;

/** What is sent of a delivery. */
export interface WebhookMessage {
  eventId: string;
  body: string;
}

/** Events to webhooks. */
export const webhookChannel: SendChannel = {
  noun: 'webhook',
  receivers: 'webhooks',
  deliveries: 'webhook_deliveries',
  receiverId: 'webhook_id',
  inUse: `h.is_enabled and ${isLiveOrganization('h.org_id')}
  and (h.workspace_id is null or ${isLiveWorkspace('h.workspace_id')})`,
  hasNew: `case when h.workspace_id is null then ${hasEvents('e.workspace_id is null')}
        else ${hasEvents('e.workspace_id = h.workspace_id')} end`,
  sent: `d.event_id as "eventId", d.body, d.event_type = '${TEST_TYPE}' as "isTest"`,
  pollMs: 250,
  waitAfter: (tried, retryAfter) => waitAfter(tried, retryAfter),
};
