/** The categories that a user may mute (defaults §11), in the order in which they are shown. */
export const mutableCategories = [
  'workspace',
  'member',
  'deployment',
  'artifact',
  'connection',
  'secret',
  'model',
  'token',
  'system',
] as const;

/** What a notification is about. `security` is always delivered. */
export type NotificationCategory = (typeof mutableCategories)[number] | 'security';

/** What kind of message it is. */
export type NotificationType = 'info' | 'success' | 'warning' | 'error' | 'action_required';
export type Priority = 'low' | 'normal' | 'high' | 'urgent';
/** What it concerns. */
export type NotificationScope = 'user' | 'workspace' | 'organization' | 'system';
/** The part of the service that it comes from (defaults §11). */
export type NotificationSource =
  | 'auth'
  | 'workspaces'
  | 'tools'
  | 'connections'
  | 'artifacts'
  | 'environments'
  | 'secrets'
  | 'tokens'
  | 'models'
  | 'recipes'
  | 'system';

/** How a notification reaches its recipient. */
export const channels = ['in_app', 'mail'] as const;
export type NotificationChannel = (typeof channels)[number];

/** How often mails come: each at once, as one digest an hour or a day, or not at all. */
export const frequencies = ['immediate', 'hourly', 'daily', 'never'] as const;
export type MailFrequency = (typeof frequencies)[number];

/** The hour at which daily digests come, unless a user says otherwise: as the column has it. */
export const DIGEST_HOUR = 8;

export const statuses = ['unread', 'read', 'archived'] as const;
/** `unread → read → archived`, `unread → archived`; over GraphQL also back. */
export type NotificationStatus = (typeof statuses)[number];

/** Days after which a notification is removed (defaults §11). */
export const RETENTION_DAYS = 90;
