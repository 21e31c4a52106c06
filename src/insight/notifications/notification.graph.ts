import type { Notification as NotificationRow } from '../../generated/prisma/client.ts';
import { builder } from '../../graphql/builder.ts';
import { optionalTime } from '../../graphql/common-fields.ts';
import { bounds, type InputFields, inputArg } from '../../graphql/inputs.ts';
import { Node, registerNode } from '../../graphql/node.ts';
import { pageArgs, pageType } from '../../graphql/page-type.ts';
import { idArg } from '../../graphql/place-args.ts';
import { refersTo } from '../../graphql/references.ts';
import { anywhere } from '../../graphql/row-places.ts';
import { wordEnum } from '../../graphql/word-enum.ts';
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
  mutableCategories,
  type NotificationCategory,
  type NotificationScope,
  type NotificationSource,
  type NotificationType,
  type Priority,
  statuses,
} from './notification.words.ts';
import type { NotificationSchedule as ScheduleRow } from './schedules.ts';

const Scope = wordEnum<NotificationScope>('NotificationScope', 'What a notification concerns.', {
  user: 'The account of its recipient.',
  workspace: 'A workspace.',
  organization: 'An organization.',
  system: 'The whole service.',
});

const Type = wordEnum<NotificationType>('NotificationType', 'What kind of message a notification is.', {
  info: 'Something that is good to know.',
  success: 'Something went well.',
  warning: 'Something will go wrong unless somebody looks at it.',
  error: 'Something went wrong.',
  action_required: 'Somebody has to do something.',
});

const PriorityEnum = wordEnum<Priority>('NotificationPriority', 'How urgent a notification is.', {
  low: 'It can wait.',
  normal: 'It is read in its turn.',
  high: 'It should be read soon.',
  urgent: 'It should be read at once.',
});

const Category = wordEnum<NotificationCategory>(
  'NotificationCategory',
  'What a notification is about.',
  {
    workspace: 'Workspaces.',
    member: 'Members and invitations.',
    deployment: 'Deployments.',
    artifact: 'Artifacts and their index.',
    connection: 'Connections of tools.',
    secret: 'Secrets.',
    model: 'Models and provider accounts.',
    token: 'Tokens.',
    system: 'The service itself.',
    security: 'The security of the account. It is always delivered, and cannot be muted.',
  },
  [...mutableCategories, 'security'],
);

const Source = wordEnum<NotificationSource>(
  'NotificationSource',
  'The part of the service that a notification comes from.',
  {
    auth: 'Sign-in and accounts.',
    workspaces: 'Workspaces, organizations and members.',
    tools: 'Tools and their instances.',
    connections: 'Connections of tools.',
    artifacts: 'Artifacts.',
    environments: 'Environments and deployments.',
    secrets: 'Secrets.',
    tokens: 'Tokens.',
    models: 'Models and provider accounts.',
    recipes: 'Recipes.',
    system: 'The service itself.',
  },
);

const Channel = wordEnum(
  'NotificationChannel',
  'How a notification reaches its recipient.',
  { in_app: 'In the lists and counts.', mail: 'By mail.' },
  channels,
);

const Frequency = wordEnum(
  'MailFrequency',
  'How often mails about notifications come.',
  {
    immediate: 'At once, a mail for each notification that is mailed.',
    hourly: 'One mail an hour about all notifications that are new, unread and still true.',
    daily: 'One mail a day about all notifications that are new, unread and still true.',
    never: 'No mails.',
  },
  frequencies,
);

const Status = wordEnum(
  'NotificationStatus',
  'Status of a notification.',
  { unread: 'It was not read.', read: 'It was read.', archived: 'It is only in the list of archived notifications.' },
  statuses,
);

const Change = wordEnum('NotificationChangeKind', 'What happened to a notification.', {
  created: 'It is new.',
  read: 'It was read.',
  updated: 'It has another status.',
  resolved: 'It is no longer true.',
});

const scopeIdOf = ({ scope, recipientId, orgId, workspaceId }: NotificationRow): string | null =>
  scope === 'workspace' ? workspaceId : scope === 'organization' ? orgId : scope === 'user' ? recipientId : null;

export const Notification = builder.prismaObject('Notification', {
  description: 'A message to the caller about something that happened. Its texts do not change afterwards.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'Identifier, `ntf_…`.' }),
    scope: t.expose('scope', { type: Scope, description: 'What it concerns.' }),
    scopeId: t.id({
      nullable: true,
      authorize: 'inherited',
      description: 'The user, the workspace or the organization that it concerns. `null` for `system`.',
      resolve: scopeIdOf,
    }),
    recipientId: t.exposeID('recipientId', { description: 'The user who gets the notification.' }),
    orgId: t.exposeID('orgId', {
      nullable: true,
      description: 'The organization where it happened. `null` for what is about the account itself.',
    }),
    workspaceId: t.exposeID('workspaceId', { nullable: true, description: 'The workspace where it happened.' }),
    type: t.expose('type', { type: Type, description: 'What kind of message it is.' }),
    priority: t.expose('priority', { type: PriorityEnum, description: 'How urgent it is.' }),
    category: t.expose('category', { type: Category, description: 'What it is about.' }),
    title: t.exposeString('title', { description: 'One line, at most 200 characters.' }),
    message: t.exposeString('message', { description: 'A few sentences, at most 2,000 characters.' }),
    actionUrl: t.string({
      nullable: true,
      authorize: 'inherited',
      description:
        'The page to open: of the front end if the operator has set `APP_URL`, else of the service itself. `null` ' +
        'if there is none.',
      resolve: (notification, _args, { services }) => services.notificationPages.urlOf(notification),
    }),
    resourcePath: t.exposeString('actionUrl', {
      nullable: true,
      description: 'The REST path of the resource, for programs. `null` if there is none.',
    }),
    actionLabel: t.exposeString('actionLabel', { nullable: true, description: 'The label of that link.' }),
    status: t.expose('status', { type: Status, description: 'Its status.' }),
    sourceService: t.expose('sourceService', {
      type: Source,
      description: 'The part of the service that it comes from.',
    }),
    sourceEvent: t.exposeString('sourceEvent', {
      description: 'What happened, as the event stream names it: `secret.expiring`. An open set, as types of events.',
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
      optionalTime('When it stopped being true. Since then, only the list of resolved notifications has it.'),
    ),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was made.' }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      description: 'When it is removed: after 90 days, or when it can no longer be true.',
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
  description: 'A mute: a category, in one place or everywhere, on one channel.',
  fields: (t) => ({
    category: t.expose('category', { type: Category, description: 'The category.' }),
    channel: t.expose('channel', { type: Channel, description: 'The channel that is muted.' }),
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
    category: t.expose('category', {
      type: Category,
      nullable: true,
      description: 'The category. `null` for all categories.',
    }),
    frequency: t.expose('frequency', { type: Frequency, description: 'How often mails come.' }),
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
  description: 'The notifications that the caller has muted.',
  fields: (t) => ({
    mutedCategories: t.field({
      type: [Category],
      authorize: 'inherited',
      description: 'Muted categories: no new notifications, neither in the lists nor by mail.',
      resolve: ({ mutedCategories }) => [...mutedCategories],
    }),
    availableCategories: t.field({
      type: [Category],
      authorize: 'inherited',
      description: 'Categories that may be muted. `security` is always delivered.',
      resolve: ({ availableCategories }) => [...availableCategories],
    }),
    mutes: t.field({
      type: [NotificationMute],
      authorize: 'inherited',
      description: 'Mutes by place and channel, besides the muted categories.',
      resolve: ({ mutes }) => [...mutes],
    }),
    schedules: t.field({
      type: [NotificationSchedule],
      authorize: 'inherited',
      description:
        'How often mails come. The schedule of the narrowest place applies, and in that place the schedule of the ' +
        'category before a schedule of all categories. Without a schedule, mails come at once. Nothing is mailed ' +
        'that is muted for mail.',
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
      "The caller's notifications of all organizations, newest first. A token sees the notifications of its own " +
      'organization.',
    authorize: READ,
    args: {
      status: t.arg({
        type: Status,
        description: 'Only notifications with this status. Default: all that are not archived.',
      }),
      category: t.arg.string({ constraints: bounds.open, description: 'Only of this category.' }),
      isResolved: t.arg.boolean({
        description:
          '`true`: only resolved notifications. `false`: only notifications that are still true. Default `false`, ' +
          'except in the list of archived notifications.',
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
    description: 'The notifications that the caller has muted.',
    authorize: READ,
    resolve: (_root, _args, { caller, services }) => services.notifications.preferences(caller),
  }),
}));

const NotificationChange = builder.objectRef<ChangeRow>('NotificationChange').implement({
  description: 'What happened to notifications of the caller.',
  fields: (t) => ({
    change: t.field({
      type: Change,
      nullable: true,
      authorize: 'inherited',
      description: 'What happened. `null` at the beginning.',
      resolve: ({ event }) => event?.type.slice('notification.'.length) ?? null,
    }),
    notification: t.field({
      type: Notification,
      nullable: true,
      authorize: 'inherited',
      description: 'The notification as it is now; the newest if several changed. `null` in the first message.',
      resolve: ({ event }, _args, { caller, services }) =>
        event && services.notifications.find(caller, event.resourceId),
    }),
    count: t.int({
      authorize: 'inherited',
      description: 'How many notifications changed together, in one place; 0 in the first message.',
      resolve: ({ event }) => (event ? Number(event.data.count ?? 1) : 0),
    }),
    unreadCount: t.exposeInt('unreadCount', { description: 'The number of unread notifications after the change.' }),
  }),
});

const FOLLOWED = { resourceType: 'notification', action: 'read' } as const;
builder.subscriptionFields((t) => ({
  unreadNotifications: t.field({
    type: UnreadNotifications,
    description:
      "The number of the caller's unread notifications in all organizations: at once, and again after each " +
      'change. A token follows the notifications of its own organization.',
    authorize: READ,
    activity: FOLLOWED,
    extensions: { showsChanges: true },
    subscribe: async (_root, _args, { caller, services }) =>
      services.notifications.followUnread(caller, await services.events.subscribeToOwn(caller)),
    resolve: (counts: CountsRow) => counts,
  }),
  notificationChanged: t.field({
    type: NotificationChange,
    description:
      "Each change of the caller's notifications, in all organizations, with the number of unread notifications. " +
      'A notification can be new, read, archived, otherwise changed, or resolved. The first message has the ' +
      'number only. A token follows the notifications of its own organization.',
    authorize: READ,
    activity: FOLLOWED,
    subscribe: async (_root, _args, { caller, services }) =>
      services.notifications.followChanges(caller, await services.events.subscribeToOwn(caller)),
    resolve: (change: ChangeRow) => change,
  }),
}));

const NotificationPreferencesInput = builder.inputType('NotificationPreferencesInput', {
  description: 'The notifications that the caller has muted.',
  fields: (t) => ({
    mutedCategories: t.field({
      type: [Category],
      required: true,
      constraints: { maxItems: 50, item: { oneOf: [...mutableCategories] } },
      description: 'Replaces the muted categories. `security` cannot be muted.',
    }),
  }),
});

/** Where a mute or a schedule applies. */
const inPlace = (t: InputFields) => ({
  orgId: t.id({
    constraints: bounds.id,
    description: 'Only notifications of this organization. Default: everywhere.',
  }),
  workspaceId: t.id({
    constraints: bounds.id,
    description: 'Only notifications of this workspace of the organization. Default: the whole organization.',
  }),
});

const NotificationMuteInput = builder.inputType('NotificationMuteInput', {
  description: 'One mute: a category, in a place or everywhere, on one channel.',
  fields: (t) => ({
    category: t.field({
      type: Category,
      required: true,
      constraints: { oneOf: [...mutableCategories] },
      description: 'The category. `security` cannot be muted.',
    }),
    channel: t.field({
      type: Channel,
      required: true,
      description: 'The channel that is muted.',
    }),
    ...inPlace(t),
  }),
});

const NotificationMutesInput = builder.inputType('NotificationMutesInput', {
  description: 'The mutes of the caller by place and channel.',
  fields: (t) => ({
    mutes: t.field({
      type: [NotificationMuteInput],
      required: true,
      constraints: { maxItems: 200 },
      description: 'All mutes of the caller. They replace the previous mutes.',
    }),
  }),
});

const MarkAllNotificationsReadPayload = builder
  .objectRef<{ count: number }>('MarkAllNotificationsReadPayload')
  .implement({
    description: 'What was marked as read.',
    fields: (t) => ({ count: t.exposeInt('count', { description: 'How many notifications were unread.' }) }),
  });

const NotificationScheduleInput = builder.inputType('NotificationScheduleInput', {
  description: 'How often mails come: of a category or of all, in a place or everywhere.',
  fields: (t) => ({
    category: t.field({
      type: Category,
      constraints: { oneOf: [...mutableCategories] },
      description: 'The category. Default: all categories.',
    }),
    frequency: t.field({ type: Frequency, required: true, description: 'How often mails come.' }),
    ...inPlace(t),
  }),
});

const NotificationSchedulesInput = builder.inputType('NotificationSchedulesInput', {
  description: 'How often mails come to the caller. Omitted fields stay as they are.',
  fields: (t) => ({
    schedules: t.field({
      type: [NotificationScheduleInput],
      constraints: { maxItems: 200, notNull: true },
      description: 'All schedules of the caller. They replace the previous schedules.',
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
  markAllNotificationsRead: t.field({
    type: MarkAllNotificationsReadPayload,
    description: "Marks all of the caller's unread notifications as read.",
    authorize: UPDATE,
    emits: ['notification.read'],
    resolve: async (_root, _args, { caller, services }) => ({ count: await services.notifications.readAll(caller) }),
  }),
  archiveNotification: t.field({
    type: Notification,
    description:
      'Archives a notification: only the list of archived notifications has it. Repeating it changes nothing.',
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
      'Mutes exactly the given categories, in the lists and by mail. Existing notifications stay, and stay counted.',
    authorize: { session: 'notification:update' },
    activity: { action: 'update', resourceType: 'notification' },
    args: inputArg(NotificationPreferencesInput, 'The preferences.'),
    resolve: (_root, { input }, { caller, services }) => services.notifications.mute(caller, input.mutedCategories),
  }),
  updateNotificationMutes: t.field({
    type: NotificationPreferences,
    description:
      'Replaces the mutes by place and channel, which apply besides the muted categories. Existing notifications ' +
      'stay, and stay counted.',
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
