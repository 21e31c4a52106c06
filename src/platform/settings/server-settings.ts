import { availableParallelism } from 'node:os';
import { choice, contact, count, integer, isAddressRange, isOrigin, list, setting, text, url } from '../../setting.ts';
import { appPages } from './app-pages.ts';

const isDatabaseUrl = (item: string): boolean => url('postgresql', 'postgres').schema.safeParse(item).success;

/** The process, its address and its database. */
export const serverSettings = {
  environment: setting(
    'NODE_ENV',
    choice(['development', 'test', 'production']),
    '`development`, `test` or `production`, which switches to safer defaults (marked below).',
    { default: 'development' },
  ),

  host: setting('HOST', text, 'Address to listen on.', { default: '127.0.0.1' }),
  port: setting('PORT', integer(0, 65_535), 'Port to listen on; 0 takes a free one and prints it.', {
    default: '4000',
  }),
  publicUrl: setting(
    'PUBLIC_URL',
    url('http', 'https'),
    'Address at which clients reach the service. Links in mails start with it.',
    {
      defaultText: '`http://HOST:PORT`',
    },
  ),
  appUrl: setting(
    'APP_URL',
    url('http', 'https'),
    'Address of the front end. Notifications and their mails lead to its pages.',
    { defaultText: "none: they lead to a page of the service's own" },
  ),
  appPages: setting(
    'APP_PAGES',
    appPages,
    'Pages of the front end that are not where they are by default, such as `workspace=/w/{workspace_id}`, between ' +
      'commas: [which there are](../guides/notifications.md#where-a-notification-leads).',
    { default: '', defaultText: 'those by default' },
  ),
  supportContact: setting(
    'SUPPORT_CONTACT',
    contact,
    'Who helps callers of the API: a mail address or the address of a page. It is `info.contact` of the OpenAPI ' +
      'document.',
    { defaultText: "the service's documentation" },
  ),
  trustedProxies: setting(
    'TRUSTED_PROXIES',
    list('addresses or CIDR ranges between commas', isAddressRange),
    'Proxies whose `X-Forwarded-For` is trusted: addresses or CIDR ranges between commas.',
    { default: '', defaultText: 'none' },
  ),
  corsOrigins: setting(
    'CORS_ORIGINS',
    list('origins like https://app.example.com between commas, or *', isOrigin),
    'Web origins that may call the service from a browser.',
    { default: '', defaultText: 'none' },
  ),
  shutdownTimeoutSeconds: setting(
    'SHUTDOWN_TIMEOUT_SECONDS',
    integer(0, 3_600),
    'How long a shutdown waits for requests in flight.',
    {
      default: '10',
    },
  ),

  shutdownDelaySeconds: setting(
    'SHUTDOWN_DELAY_SECONDS',
    integer(0, 600),
    'How long a shutdown still takes requests, while `/readyz` is 503: until a proxy sends them to other nodes.',
    { default: '0' },
  ),
  workers: setting(
    'WORKERS',
    count(64, availableParallelism),
    'Processes of this node on one port: a number, or `auto` for one per CPU. Limits and connections that are ' +
      '[counted by process](scale-out.md#several-processes) hold for each.',
    { default: '1' },
  ),

  dataDir: setting('DATA_DIR', text, 'Folder for the embedded database, keys, files and unsent mail.', {
    default: './.data',
  }),
  databaseUrl: setting(
    'DATABASE_URL',
    url('postgresql', 'postgres'),
    'PostgreSQL 15 or newer to use instead of the embedded one.',
    {
      defaultText: 'embedded PostgreSQL in `DATA_DIR/postgres`',
      secret: true,
    },
  ),
  databaseDirectUrl: setting(
    'DATABASE_DIRECT_URL',
    url('postgresql', 'postgres'),
    'The same database without a pooler: for migrations, jobs and commands where `DATABASE_URL` leads to PgBouncer.',
    { defaultText: '`DATABASE_URL`', secret: true },
  ),
  databaseReadUrls: setting(
    'DATABASE_READ_URLS',
    list('PostgreSQL URLs between commas', isDatabaseUrl),
    'Replicas of the database for lists, sums and searches: [which reads](scale-out.md#read-replicas).',
    { default: '', defaultText: 'none', secret: true },
  ),
  databasePoolSize: setting(
    'DATABASE_POOL_SIZE',
    integer(1, 500),
    'Maximum number of database connections of a process.',
    {
      default: '10',
    },
  ),

  redisUrl: setting(
    'REDIS_URL',
    url('redis', 'rediss'),
    'Redis 6 or newer, or Valkey, that several nodes share: `redis://:PASSWORD@HOST:6379/0`, or `rediss://` for TLS. ' +
      'Rate and sign-in limits are then counted by all nodes together, and events of other nodes come at once: ' +
      '[several nodes](scale-out.md#redis).',
    { defaultText: 'none: each node counts by itself', secret: true },
  ),

  logLevel: setting(
    'LOG_LEVEL',
    choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    'Least severe level that is logged.',
    {
      default: 'info',
    },
  ),
  logFormat: setting(
    'LOG_FORMAT',
    choice(['json', 'text']),
    '`json` for one object a line, `text` for people at a terminal.',
    { defaultText: '`json` when `NODE_ENV=production`, else `text`' },
  ),
  foreignVariables: setting(
    'FOREIGN_VARIABLES',
    list('names of variables between commas', (item) => /^\w+$/.test(item)),
    'Variables of other programs that the service would take for misspelt settings of its own, and not start.',
    { default: '', defaultText: 'none' },
  ),
} as const;
