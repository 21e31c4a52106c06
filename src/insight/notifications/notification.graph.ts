import type { InputRef } from '@pothos/core';
import type { Notification as NotificationRow } from '../../generated/prisma/client.ts';
import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { bounds, inputArg } from '../../graphql/inputs.ts';
import { Node, registerNode } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { anywhere } from '../../graphql/row-places.ts';
import type { NotificationMute as MuteRow } from './mutes.ts';
import type {
  NotificationChange as ChangeRow,
  UnreadCounts as CountsRow,
  NotificationPreferences as PreferencesRow,
} from './notification.service.ts';
import {
  channels,
  DIGEST_HOUR,
  frequencies,
  type MailFrequency,
  mutableCategories,
  type NotificationCategory,
  type NotificationChannel,
  type NotificationStatus,
  statuses,
} from './notification.words.ts';
import type { NotificationSchedule as ScheduleRow } from './schedules.ts';

const scopeIdOf = ({ scope, recipientId, orgId, workspaceId }: NotificationRow): string | null =>
  scope === 'workspace' ? workspaceId : scope === 'organization' ? orgId : scope === 'user' ? recipientId : null;

export const Notification = builder.prismaObject('Notification', {
  description: 'What the caller was told about something that happened. Its texts are as of that moment.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `ntf_…`.' }),
    scope: t.exposeString('scope', {
      description: 'What it concerns: `user`, `workspace`, `organization` or `system`.',
    }),
    scopeId: t.id({
      nullable: true,
      authorize: 'inherited',
      description: 'The user, the workspace or the organization that it concerns. `null` for `system`.',
      resolve: scopeIdOf,
    }),
    recipientId: t.exposeID('recipientId', { description: 'The user who was told.' }),
    orgId: t.exposeID('orgId', {
      nullable: true,
      description: 'The organization where it happened. `null` for what is about the account itself.',
    }),
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: 'The workspace where it happened.' }),
    type: t.exposeString('type', {
      description: '`info`, `success`, `warning`, `error` or `action_required`.',
    }),
    priority: t.exposeString('priority', { description: '`low`, `normal`, `high` or `urgent`.' }),
    category: t.exposeString('category', {
      description: 'One of the `availableCategories` of the preferences, or `security`.',
    }),
    title: t.exposeString('title', { description: 'One line, at most 200 characters.' }),
    message: t.exposeString('message', { description: 'A few sentences, at most 2,000 characters.' }),
    actionUrl: t.string({
      nullable: true,
      authorize: 'inherited',
      description:
        'The page to open: of the front end if the service knows where it is, else of its own. `null` if there is ' +
        'none.',
      resolve: (notification, _args, { services }) => services.notificationPages.urlOf(notification),
    }),
    resourcePath: t.exposeString('actionUrl', {
      nullable: true,
      description: 'The REST path of the same, for programs. `null` if there is none.',
    }),
    actionLabel: t.exposeString('actionLabel', { nullable: true, description: 'The label of that link.' }),
    status: t.exposeString('status', { description: '`unread`, `read` or `archived`.' }),
    sourceService: t.exposeString('sourceService', {
      description: 'The part of the service that it comes from, such as `secrets`.',
    }),
    sourceEvent: t.exposeString('sourceEvent', {
      description: 'What happened, as the event stream names it: `secret.expiring`.',
    }),
    metadata: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: '`resource_type` and `resource_id` of what it is about, and details that depend on `sourceEvent`.',
      resolve: ({ metadata }) => metadata as Record<string, unknown>,
    }),
    readAt: t.expose('readAt', optionalTime('When it was marked as read.')),
    resolvedAt: t.expose(
      'resolvedAt',
      optionalTime('When it stopped being true. From then on it is only in the list of what is resolved.'),
    ),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'When it is removed: after 90 days, or at a moment from which it cannot be true any more.',
    }),
  }),
});
refersTo(Notification, {
  recipientId: { kind: 'user', anywhere: true },
  orgId: { kind: 'organization', anywhere: true },
  workspaceId: { kind: 'workspace', anywhere: true },
});
registerNode('notification', Notification, ({ caller, services }, id) => services.notifications.find(caller, id));

const NotificationConnection = pageType('Notification', Notification);
builder.objectField(NotificationConnection, 'unreadCount', (t) =>
  t.int({
    authorize: 'inherited',
    description: 'The number of all unread notifications of the caller, whatever the filters of the list are.',
    resolve: async (_page, _args, { caller, services }) => (await services.notifications.unread(caller)).unreadCount,
  }),
);

const UnreadNotifications = builder.objectRef<CountsRow>('UnreadNotifications').implement({
  description: 'How many unread notifications the caller has.',
  fields: (t) => ({
    unreadCount: t.exposeInt('unreadCount', { description: 'All of them.' }),
    byCategory: t.field({
      type: 'JSONObject',
      authorize: 'inherited',
      description: 'Their number by category, without categories that have none.',
      resolve: ({ byCategory }) => ({ ...byCategory }),
    }),
  }),
});

const NotificationMute = builder.objectRef<MuteRow>('NotificationMute').implement({
  description: 'What a user does not want: a category, somewhere or everywhere, by one channel.',
  fields: (t) => ({
    category: t.exposeString('category', { description: 'The category.' }),
    channel: t.exposeString('channel', { description: '`in_app` or `mail`.' }),
    orgId: t.exposeID('orgId', { nullable: true, description: 'The organization. `null` for everywhere.' }),
    workspaceId: t.exposeID('workspaceId', {
      nullable: true,
      description: 'The workspace. `null` for the whole organization.',
    }),
  }),
});
refersTo(NotificationMute, {
  orgId: { kind: 'organization', anywhere: true },
  workspaceId: { kind: 'workspace', anywhere: true },
});

const NotificationSchedule = builder.objectRef<ScheduleRow>('NotificationSchedule').implement({
  description: 'How often mails about a category come, somewhere or everywhere.',
  fields: (t) => ({
    category: t.exposeString('category', { nullable: true, description: 'The category. `null` for all of them.' }),
    frequency: t.exposeString('frequency', {
      description: '`immediate`: each at once. `hourly`, `daily`: one mail about all that is new. `never`: no mails.',
    }),
    orgId: t.exposeID('orgId', { nullable: true, description: 'The organization. `null` for everywhere.' }),
    workspaceId: t.exposeID('workspaceId', {
      nullable: true,
      description: 'The workspace. `null` for the whole organization.',
    }),
  }),
});
refersTo(NotificationSchedule, {
  orgId: { kind: 'organization', anywhere: true },
  workspaceId: { kind: 'workspace', anywhere: true },
});

const NotificationPreferences = builder.objectRef<PreferencesRow>('NotificationPreferences').implement({
  description: 'Which notifications the caller does not want.',
  fields: (t) => ({
    mutedCategories: t.stringList({
      authorize: 'inherited',
      description: 'Categories of which nothing new is told, neither here nor by mail.',
      resolve: ({ mutedCategories }) => [...mutedCategories],
    }),
    availableCategories: t.stringList({
      authorize: 'inherited',
      description: 'Categories that may be muted. `security` is always delivered.',
      resolve: ({ availableCategories }) => [...availableCategories],
    }),
    mutes: t.field({
      type: [NotificationMute],
      authorize: 'inherited',
      description: 'What is muted by place and channel, besides the muted categories.',
      resolve: ({ mutes }) => [...mutes],
    }),
    schedules: t.field({
      type: [NotificationSchedule],
      authorize: 'inherited',
      description:
        'How often mails come. For a notification, the schedule of the narrowest place counts, and there the one of ' +
        'its category before the one of all; without a schedule: at once. What is muted is not mailed at all.',
      resolve: ({ schedules }) => [...schedules],
    }),
    digestHour: t.exposeInt('digestHour', {
      description: `The hour of the day at which daily digests come, 0 to 23. Default ${DIGEST_HOUR}.`,
    }),
    timeZone: t.exposeString('timeZone', {
      description: 'The time zone of that hour: the `timezone` of the account, or else `UTC`.',
    }),
  }),
});

const READ = { service: 'notification:read' } as const;
const UPDATE = { service: 'notification:update' } as const;

builder.queryFields((t) => ({
  notification: t.field({
    type: Notification,
    description: "One of the caller's notifications, by its identifier.",
    authorize: READ,
    args: idArg('The notification.'),
    resolve: (_root, { id }, { caller, services }) => services.notifications.get(caller, id),
  }),
  notifications: t.field({
    type: NotificationConnection,
    description:
      "The caller's notifications of all organizations, newest first. A token sees those of its own organization.",
    authorize: READ,
    args: {
      status: t.arg({
        type: 'String' as unknown as InputRef<NotificationStatus>,
        constraints: { oneOf: [...statuses] },
        description: '`unread`, `read` or `archived`. Default: all that are not archived.',
      }),
      category: t.arg.string({ constraints: bounds.open, description: 'Only of this category.' }),
      isResolved: t.arg.boolean({
        description: 'Only what stopped being true, or only what did not. Default: the latter, unless archived.',
      }),
      ...pageArgs({ min: 1, max: 100 }, 20),
    },
    resolve: (_root, args, context) => context.services.notifications.list(context, anywhere, args),
  }),
  unreadNotifications: t.field({
    type: UnreadNotifications,
    description: 'How many unread notifications the caller has.',
    authorize: READ,
    resolve: (_root, _args, { caller, services }) => services.notifications.unread(caller),
  }),
  notificationPreferences: t.field({
    type: NotificationPreferences,
    description: 'Which notifications the caller does not want.',
    authorize: READ,
    resolve: (_root, _args, { caller, services }) => services.notifications.preferences(caller),
  }),
}));

const NotificationChange = builder.objectRef<ChangeRow>('NotificationChange').implement({
  description: 'What happened to notifications of the caller.',
  fields: (t) => ({
    change: t.string({
      nullable: true,
      authorize: 'inherited',
      description:
        '`created`, `read`, `updated` (another status) or `resolved` (not true any more). `null` at the beginning.',
      resolve: ({ event }) => event?.type.slice('notification.'.length) ?? null,
    }),
    notification: t.field({
      type: Notification,
      nullable: true,
      authorize: 'inherited',
      description: 'The notification as it is now; of several in one place, the newest. `null` at the beginning.',
      resolve: ({ event }, _args, { caller, services }) =>
        event && services.notifications.find(caller, event.resourceId),
    }),
    count: t.int({
      authorize: 'inherited',
      description: 'How many changed together, in one place; 0 at the beginning.',
      resolve: ({ event }) => (event ? Number(event.data.count ?? 1) : 0),
    }),
    unreadCount: t.exposeInt('unreadCount', { description: 'How many are unread since then.' }),
  }),
});

const FOLLOWED = { resourceType: 'notification', action: 'read' } as const;
builder.subscriptionFields((t) => ({
  unreadNotifications: t.field({
    type: UnreadNotifications,
    description:
      'How many unread notifications the caller has: at once, and again when it has changed, in any organization. ' +
      'A token follows those of its own.',
    authorize: READ,
    activity: FOLLOWED,
    subscribe: async (_root, _args, { caller, services }) =>
      services.notifications.followUnread(caller, await services.events.subscribeToOwn(caller)),
    resolve: (counts: CountsRow) => counts,
  }),
  notificationChanged: t.field({
    type: NotificationChange,
    description:
      'Each change of the notifications of the caller, in any organization, with the number of the unread: when one ' +
      'is new, read, archived or otherwise changed, or not true any more. First, the number alone. A token follows ' +
      'those of its own organization.',
    authorize: READ,
    activity: FOLLOWED,
    subscribe: async (_root, _args, { caller, services }) =>
      services.notifications.followChanges(caller, await services.events.subscribeToOwn(caller)),
    resolve: (change: ChangeRow) => change,
  }),
}));

const NotificationPreferencesInput = builder.inputType('NotificationPreferencesInput', {
  description: 'Which notifications the caller does not want.',
  fields: (t) => ({
    mutedCategories: t.field({
      type: ['String'] as unknown as [InputRef<NotificationCategory>],
      required: true,
      constraints: { maxItems: 50, item: { oneOf: [...mutableCategories] } },
      description: 'Replaces the muted categories. `security` cannot be muted.',
    }),
  }),
});

const NotificationMuteInput = builder.inputType('NotificationMuteInput', {
  description: 'One mute: a category, in a place or everywhere, on one channel.',
  fields: (t) => ({
    category: t.field({
      type: 'String' as unknown as InputRef<NotificationCategory>,
      required: true,
      constraints: { oneOf: [...mutableCategories] },
      description: 'The category. `security` cannot be muted.',
    }),
    channel: t.field({
      type: 'String' as unknown as InputRef<NotificationChannel>,
      required: true,
      constraints: { oneOf: [...channels] },
      description: '`in_app`: not in the lists and counts. `mail`: no mails.',
    }),
    orgId: t.id({ constraints: bounds.id, description: 'Only in this organization. Default: everywhere.' }),
    workspaceId: t.id({
      constraints: bounds.id,
      description: 'Only in this workspace of the organization. Default: in all of it.',
    }),
  }),
});

const NotificationMutesInput = builder.inputType('NotificationMutesInput', {
  description: 'The mutes of the caller by place and channel.',
  fields: (t) => ({
    mutes: t.field({
      type: [NotificationMuteInput],
      required: true,
      constraints: { maxItems: 200 },
      description: 'All mutes of the caller: these replace the ones that were set before.',
    }),
  }),
});

const NotificationScheduleInput = builder.inputType('NotificationScheduleInput', {
  description: 'How often mails come: of a category or of all, in a place or everywhere.',
  fields: (t) => ({
    category: t.field({
      type: 'String' as unknown as InputRef<NotificationCategory>,
      constraints: { oneOf: [...mutableCategories] },
      description: 'The category. Default: all of them.',
    }),
    frequency: t.field({
      type: 'String' as unknown as InputRef<MailFrequency>,
      required: true,
      constraints: { oneOf: [...frequencies] },
      description:
        '`immediate`: what is mailed comes at once. `hourly`, `daily`: one mail about all notifications that are ' +
        'new, unread and still true. `never`: no mails.',
    }),
    orgId: t.id({ constraints: bounds.id, description: 'Only in this organization. Default: everywhere.' }),
    workspaceId: t.id({
      constraints: bounds.id,
      description: 'Only in this workspace of the organization. Default: in all of it.',
    }),
  }),
});

const NotificationSchedulesInput = builder.inputType('NotificationSchedulesInput', {
  description: 'How often mails come to the caller. Omitted fields stay as they are.',
  fields: (t) => ({
    schedules: t.field({
      type: [NotificationScheduleInput],
      constraints: { maxItems: 200, notNull: true },
      description: 'All schedules of the caller: these replace the ones that were set before.',
    }),
    digestHour: t.int({
      constraints: { min: 0, max: 23, notNull: true },
      description: 'The hour of the day, in the time zone of the account, at which daily digests come.',
    }),
  }),
});

builder.mutationFields((t) => ({
  markNotificationRead: t.field({
    type: Notification,
    description: 'Marks a notification as read. An archived one stays archived.',
    authorize: UPDATE,
    mayEmit: ['notification.read', 'notification.updated'],
    args: idArg('The notification.'),
    resolve: (_root, { id }, { caller, services }) => services.notifications.read(caller, id),
  }),
  markNotificationUnread: t.field({
    type: Notification,
    description: 'Marks a notification as unread. An archived one stays archived.',
    authorize: UPDATE,
    emits: ['notification.updated'],
    args: idArg('The notification.'),
    resolve: (_root, { id }, { caller, services }) => services.notifications.markUnread(caller, id),
  }),
  markAllNotificationsRead: t.int({
    description: "Marks all of the caller's unread notifications as read. Returns how many there were.",
    authorize: UPDATE,
    emits: ['notification.read'],
    resolve: (_root, _args, { caller, services }) => services.notifications.readAll(caller),
  }),
  archiveNotification: t.field({
    type: Notification,
    description: 'Archives a notification: it is only in the list of archived ones. Repeating it changes nothing.',
    authorize: UPDATE,
    emits: ['notification.updated'],
    args: idArg('The notification.'),
    resolve: (_root, { id }, { caller, services }) => services.notifications.archive(caller, id),
  }),
  unarchiveNotification: t.field({
    type: Notification,
    description: 'Takes a notification out of the archive: read if it was marked as read, else unread.',
    authorize: UPDATE,
    mayEmit: ['notification.read', 'notification.updated'],
    args: idArg('The notification.'),
    resolve: (_root, { id }, { caller, services }) => services.notifications.unarchive(caller, id),
  }),
  updateNotificationPreferences: t.field({
    type: NotificationPreferences,
    description:
      'Mutes exactly the given categories: nothing new of them is told, neither here nor by mail. ' +
      'What was told before stays, and stays counted.',
    authorize: { session: 'notification:update' },
    activity: { action: 'update', resourceType: 'notification' },
    args: inputArg(NotificationPreferencesInput, 'The preferences.'),
    resolve: (_root, { input }, { caller, services }) => services.notifications.mute(caller, input.mutedCategories),
  }),
  updateNotificationMutes: t.field({
    type: NotificationPreferences,
    description:
      'Mutes exactly this by place and channel, besides the muted categories: nothing new of it is told there. ' +
      'What was told before stays, and stays counted.',
    authorize: { session: 'notification:update' },
    activity: { action: 'update', resourceType: 'notification' },
    args: inputArg(NotificationMutesInput, 'The mutes.'),
    resolve: async (_root, { input }, { caller, services }) => {
      await services.notificationMutes.replace(caller, input.mutes);
      return services.notifications.preferences(caller);
    },
  }),
  updateNotificationSchedules: t.field({
    type: NotificationPreferences,
    description:
      'Says how often mails come: exactly this, by place and category. What waits for a digest still comes with it. ' +
      'What is muted in the lists is in no digest: it is mailed at once unless mails are muted too.',
    authorize: { session: 'notification:update' },
    activity: { action: 'update', resourceType: 'notification' },
    args: inputArg(NotificationSchedulesInput, 'The schedules.'),
    resolve: async (_root, { input }, { caller, services }) => {
      await services.notificationSchedules.replace(caller, input);
      return services.notifications.preferences(caller);
    },
  }),
}));
