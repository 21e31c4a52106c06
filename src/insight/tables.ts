import type { GroupTables } from '../data/lent-tables.ts';

/** What happened: sums of activity and of runs, and notifications. */
export const tables: GroupTables = {
  owns: [
    'activity_divided',
    'activity_fold',
    'activity_latencies',
    'activity_uses',
    'activity_sums',
    'execution_sums',
    'storage_samples',
    'notifications',
    'notification_preferences',
    'notification_mutes',
    'notification_schedules',
    'notification_digests',
  ],
  lends: {},
};
