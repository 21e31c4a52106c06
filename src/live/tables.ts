import type { GroupTables } from '../data/lent-tables.ts';

/** Who is present on a stream, and where events are sent to. Events are of the ground. */
export const tables: GroupTables = {
  owns: ['presences', 'webhooks', 'webhook_deliveries', 'audit_streams', 'audit_stream_deliveries'],
  lends: {
    webhooks: { insight: 'whether a notification of a disabled webhook is still true' },
    audit_streams: { insight: 'whether a notification of a disabled stream is still true' },
  },
};
