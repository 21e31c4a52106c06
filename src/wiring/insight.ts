import { ActivityService } from '../insight/activity/activity.service.ts';
import { AnalyticsService } from '../insight/analytics/analytics.service.ts';
import { HistoryRetention } from '../insight/analytics/history-retention.ts';
import { SeriesService } from '../insight/analytics/series.service.ts';
import type { NotificationPages } from '../insight/notifications/notification.pages.ts';
import { NotificationService } from '../insight/notifications/notification.service.ts';
import type { Ground } from './ground.ts';

/** Activity, analytics and notifications. */
export function createInsight({ deps }: Ground, notificationPages: NotificationPages) {
  return {
    open: {
      activityLog: new ActivityService(deps),
      analytics: new AnalyticsService(deps),
      series: new SeriesService(deps),
      notifications: new NotificationService(deps),
      notificationPages,
    },
    closed: { historyRetention: new HistoryRetention(deps.sql) },
  };
}
