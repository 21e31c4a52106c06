import { ActivityService } from '../insight/activity/activity.service.ts';
import { ActivityExports } from '../insight/activity/activity-export.ts';
import { ActivityFeed } from '../insight/activity/activity-feed.ts';
import { AnalyticsService } from '../insight/analytics/analytics.service.ts';
import { HistoryRetention } from '../insight/analytics/history-retention.ts';
import { ModelUsageHistory } from '../insight/analytics/model-usage-series.service.ts';
import { SeriesService } from '../insight/analytics/series.service.ts';
import { StorageSamples } from '../insight/analytics/storage-samples.ts';
import { TopResources } from '../insight/analytics/top-resources.ts';
import { NotificationDigests } from '../insight/notifications/digests.ts';
import { NotificationMutes } from '../insight/notifications/mutes.ts';
import type { NotificationPages } from '../insight/notifications/notification.pages.ts';
import { NotificationService } from '../insight/notifications/notification.service.ts';
import { NotificationSchedules } from '../insight/notifications/schedules.ts';
import type { UnsubscribeLinks } from '../insight/notifications/unsubscribe-links.ts';
import { Unsubscribing } from '../insight/notifications/unsubscribing.ts';
import type { AccountMail } from '../platform/mail/account-mail.ts';
import type { Ground } from './ground.ts';

/** What notifications and their mails need: made before the groups, because changes make notifications. */
export interface NotificationLinks {
  mail: AccountMail;
  pages: NotificationPages;
  unsubscribeLinks: UnsubscribeLinks;
}

/** Activity, analytics and notifications. */
export function createInsight({ deps, open: { authentication } }: Ground, links: NotificationLinks) {
  const { pages, unsubscribeLinks } = links;
  const activityLog = new ActivityService(deps);
  return {
    open: {
      activityLog,
      activityExports: new ActivityExports({ activityLog, authentication }),
      analytics: new AnalyticsService(deps),
      series: new SeriesService(deps),
      modelUsageHistory: new ModelUsageHistory(deps),
      topResources: new TopResources(deps),
      notifications: new NotificationService(deps),
      notificationPages: pages,
      unsubscribing: new Unsubscribing(deps, unsubscribeLinks),
      notificationMutes: new NotificationMutes(deps),
      notificationSchedules: new NotificationSchedules(deps),
    },
    closed: {
      activityFeed: new ActivityFeed(deps.sql),
      historyRetention: new HistoryRetention(deps.sql),
      storageSamples: new StorageSamples(deps),
      notificationDigests: new NotificationDigests(deps, links),
    },
  };
}
