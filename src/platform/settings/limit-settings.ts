import { integer, setting } from '../../setting.ts';

/** What one caller may take, and how long things may last. */
export const limitSettings = {
  executionTimeoutHours: setting(
    'EXECUTION_TIMEOUT_HOURS',
    integer(0, 8_760),
    'A run that is not reported for so many hours is closed as failed; 0 = never.',
    { default: '24' },
  ),
  rateLimitRps: setting('RATE_LIMIT_RPS', integer(0, 1_000_000), 'Requests per second of one caller; 0 = no limit.', {
    default: '500',
  }),
  rateLimitBurst: setting('RATE_LIMIT_BURST', integer(1, 1_000_000), 'Requests that a caller may send at once.', {
    default: '1000',
  }),
  loginFailuresPerMinute: setting(
    'LOGIN_FAILURES_PER_MINUTE',
    integer(0, 1_000_000),
    'Failed sign-ins per minute and client address; 0 = no limit.',
    {
      default: '30',
    },
  ),
  mailsPerHour: setting(
    'MAILS_PER_HOUR',
    integer(0, 1_000_000),
    'Mails to addresses that somebody names (invitations, new accounts, changes of address), per hour and user, ' +
      'organization and client address; 0 = no limit. Beyond it, accounts are created without the mail that ' +
      'confirms their address.',
    {
      default: '50',
    },
  ),
  ssoStartsPerMinute: setting(
    'SSO_STARTS_PER_MINUTE',
    integer(0, 1_000_000),
    'Sign-ins at identity providers that one client address may begin per minute, and as many questions whether ' +
      'there is a provider; 0 = no limit.',
    { default: '20' },
  ),
  registrationsPerMinute: setting(
    'REGISTRATIONS_PER_MINUTE',
    integer(0, 1_000_000),
    'Registrations per minute and client address; 0 = no limit.',
    {
      default: '300',
    },
  ),
  bodyLimitBytes: setting(
    'BODY_LIMIT_BYTES',
    integer(1_024, 1_073_741_824),
    'Largest request body; without sign-in, JSON has at most 64 KiB.',
    {
      default: String(2 * 1024 * 1024),
    },
  ),

  writeTimeoutSeconds: setting(
    'WRITE_TIMEOUT_SECONDS',
    integer(1, 3_600),
    'How long a client may leave a response or a stream unread before its connection is closed.',
    { default: '30' },
  ),
  maxSocketsPerUser: setting(
    'MAX_SOCKETS_PER_USER',
    integer(1, 100_000),
    'Maximum number of open WebSockets of one user on each node, with or without event streams.',
    {
      default: '50',
    },
  ),
  maxStreamsPerUser: setting(
    'MAX_STREAMS_PER_USER',
    integer(1, 100_000),
    'Maximum number of connections of one user with event streams on each node. A WebSocket counts once, whatever ' +
      'number of subscriptions it has; tokens count with their user.',
    { default: '50' },
  ),
  maxStreamsPerWorkspace: setting(
    'MAX_STREAMS_PER_WORKSPACE',
    integer(1, 1_000_000),
    'Maximum number of connections with event streams of one workspace, or of one organization itself, on each node.',
    { default: '200' },
  ),
} as const;
