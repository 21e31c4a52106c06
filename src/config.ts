import path from 'node:path';
import type { z } from 'zod';
import { isRedirectTarget } from './kernel/redirect-targets.ts';
import { allowedTargets, isServerAddress } from './platform/outbound/allowed-targets.ts';
import {
  choice,
  flag,
  integer,
  isAddressRange,
  isOrigin,
  type Kind,
  list,
  namedKeys,
  type Setting,
  text,
  url,
} from './setting.ts';

type Details = Pick<Setting<unknown>, 'default' | 'defaultText' | 'secret'>;
type WithDefault<T> = Setting<T> & { readonly default: string };

function setting<T>(
  variable: string,
  kind: Kind<T>,
  description: string,
  details: Details & { default: string },
): WithDefault<T>;
function setting<T>(variable: string, kind: Kind<T>, description: string, details?: Details): Setting<T>;
function setting<T>(variable: string, kind: Kind<T>, description: string, details: Details = {}): Setting<T> {
  return { variable, ...kind, description, ...details };
}

/** 512 TiB. */
const MOST_STORAGE = 512 * 1024 ** 4;

const inProduction = { defaultText: 'true when `NODE_ENV=production`, else false' };
const outsideProduction = { defaultText: 'false when `NODE_ENV=production`, else true' };

/** Every variable that the service reads, by its name in {@link Config}. */
const settings = {
  environment: setting('NODE_ENV', text, '`production` switches to safer defaults (marked below).', {
    default: 'development',
  }),

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
  trustedProxies: setting(
    'TRUSTED_PROXIES',
    list('addresses or CIDR ranges between commas', isAddressRange),
    'Proxies whose `X-Forwarded-For` is trusted.',
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
  databasePoolSize: setting(
    'DATABASE_POOL_SIZE',
    integer(1, 500),
    'Maximum number of database connections of this process.',
    {
      default: '10',
    },
  ),

  logLevel: setting(
    'LOG_LEVEL',
    choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    'Least severe level that is logged.',
    {
      default: 'info',
    },
  ),

  maxUploadBytes: setting('MAX_UPLOAD_BYTES', integer(1, 5 * 1024 ** 3), 'Largest file that may be uploaded.', {
    default: String(50 * 1024 * 1024),
  }),
  maxStorageBytesPerWorkspace: setting(
    'MAX_STORAGE_BYTES_PER_WORKSPACE',
    integer(0, MOST_STORAGE),
    'Bytes that the artifacts of a workspace may hold, with all versions, deleted ones and uploads under way; ' +
      '0 = no limit. Administrators of the organization may set less for a workspace.',
    { default: String(20 * 1024 ** 3) },
  ),
  maxStorageBytesPerOrganization: setting(
    'MAX_STORAGE_BYTES_PER_ORGANIZATION',
    integer(0, MOST_STORAGE),
    'The same for all workspaces of an organization together. An administrator of the platform may set more or less ' +
      'for an organization.',
    { default: String(100 * 1024 ** 3) },
  ),
  s3Bucket: setting('S3_BUCKET', text, 'Bucket of an S3-compatible store for files. It must exist.', {
    defaultText: 'files are kept in `DATA_DIR/files`',
  }),
  s3Endpoint: setting('S3_ENDPOINT', url('http', 'https'), 'Address of the store, as the service reaches it.', {
    defaultText: "Amazon's own for `S3_REGION`",
  }),
  s3PublicEndpoint: setting(
    'S3_PUBLIC_ENDPOINT',
    url('http', 'https'),
    'Address of the store, as clients reach it. Downloads are then redirected to it.',
    { defaultText: 'none: with `S3_ENDPOINT` set, the service itself serves downloads' },
  ),
  s3Region: setting('S3_REGION', text, 'Region of the bucket.', { default: 'us-east-1' }),
  s3AccessKeyId: setting('S3_ACCESS_KEY_ID', text, 'Key of the store.', {
    defaultText: 'what the AWS SDK finds on the machine',
  }),
  s3SecretAccessKey: setting('S3_SECRET_ACCESS_KEY', text, 'Secret of this key.', {
    defaultText: 'none',
    secret: true,
  }),
  s3ForcePathStyle: setting(
    'S3_FORCE_PATH_STYLE',
    flag,
    'Whether the bucket stands in the path of an address instead of its host name.',
    { defaultText: 'true when `S3_ENDPOINT` is set, else false' },
  ),

  smtpUrl: setting('SMTP_URL', url('smtp', 'smtps'), 'Mail server, like `smtp://user:password@mail.example.com:587`.', {
    defaultText: 'mails are written to files in `DATA_DIR/mail`',
    secret: true,
  }),
  mailFrom: setting('MAIL_FROM', text, 'Sender of mails.', { default: 'Platform <no-reply@localhost>' }),

  outboundAllow: setting(
    'OUTBOUND_ALLOW',
    allowedTargets,
    'Hosts, addresses and CIDR ranges that outbound calls may reach although they are not public, also over http and ' +
      'on any port, like `idp.internal, 10.2.0.0/16, 127.0.0.1:9000`. All other targets must be public and use https ' +
      'on port 443 or 8443. Metadata services of clouds are never called.',
    { default: '', defaultText: 'none' },
  ),
  outboundDns: setting(
    'OUTBOUND_DNS',
    list('addresses of DNS servers between commas, each with a port if wanted', isServerAddress),
    'DNS servers that are asked for the targets of outbound calls, and for proofs of mail domains.',
    { default: '', defaultText: 'those of the system' },
  ),

  allowRegistration: setting(
    'ALLOW_REGISTRATION',
    flag,
    'Whether anyone may register. If not, registration requires an invitation.',
    { default: 'true' },
  ),
  requireVerifiedEmail: setting(
    'REQUIRE_VERIFIED_EMAIL',
    flag,
    'Whether an account must verify its address before it may sign in.',
    {
      default: 'false',
    },
  ),
  allowMemberWorkspaces: setting(
    'ALLOW_MEMBER_WORKSPACES',
    flag,
    'Whether plain members of an organization may create workspaces.',
    {
      default: 'false',
    },
  ),
  allowNonExpiringTokens: setting(
    'ALLOW_NON_EXPIRING_TOKENS',
    flag,
    'Whether API tokens and app tokens may be created that never expire.',
    { default: 'false' },
  ),
  maxTokensPerOwner: setting(
    'MAX_TOKENS_PER_OWNER',
    integer(0, 1_000_000),
    'Maximum number of live tokens of a user or an app in an organization; 0 = no limit.',
    { default: '1000' },
  ),
  maxTokensPerOrganization: setting(
    'MAX_TOKENS_PER_ORGANIZATION',
    integer(0, 1_000_000),
    'Maximum number of live tokens of an organization; 0 = no limit. REST lists return at most 10,000.',
    { default: '5000' },
  ),
  maxOrganizationsPerUser: setting(
    'MAX_ORGANIZATIONS_PER_USER',
    integer(0, 1_000_000),
    'Maximum number of organizations that a user may have created; 0 = no limit.',
    { default: '100' },
  ),
  passwordBlocklist: setting(
    'PASSWORD_BLOCKLIST',
    flag,
    'Whether the most common passwords are refused.',
    inProduction,
  ),
  ssoRedirectUris: setting(
    'SSO_REDIRECT_URIS',
    list('origins, or addresses without query, between commas', isRedirectTarget),
    'Where a sign-in at an identity provider may send a browser afterwards, like `https://app.example.com` for all ' +
      'of its pages, or `https://app.example.com/signed-in`.',
    { default: '', defaultText: "none but the service's own pages" },
  ),
  accessTokenTtlSeconds: setting('ACCESS_TOKEN_TTL_SECONDS', integer(10, 86_400), 'Lifetime of an access token.', {
    default: '1800',
  }),
  refreshTokenIdleDays: setting(
    'REFRESH_TOKEN_IDLE_DAYS',
    integer(1, 3_650),
    'Days without a refresh after which a session ends.',
    {
      default: '7',
    },
  ),
  refreshTokenAbsoluteDays: setting(
    'REFRESH_TOKEN_ABSOLUTE_DAYS',
    integer(1, 3_650),
    'Days after which a session ends in any case.',
    {
      default: '30',
    },
  ),
  keysDir: setting(
    'KEYS_DIR',
    text,
    'Folder of the signing keys; created on the first start, mode 0600. All nodes of a service share it.',
    {
      defaultText: '`DATA_DIR/keys`',
    },
  ),
  appSecret: setting(
    'APP_SECRET',
    { mustBe: 'at least 32 characters long', schema: text.schema.refine((value) => value.length >= 32) },
    'Authenticates page cursors and other values that the service issues and accepts back. The same on all nodes.',
    { defaultText: 'created on the first start in `KEYS_DIR/app.key`', secret: true },
  ),
  formerAppSecrets: setting(
    'FORMER_APP_SECRETS',
    list('secrets of at least 32 characters between commas', (item) => item.length >= 32),
    'Former values of `APP_SECRET`, separated by commas. Download links that they signed stay valid until they expire.',
    { default: '', defaultText: 'none', secret: true },
  ),
  rootKeys: setting(
    'ROOT_KEYS',
    namedKeys,
    'Keys that wrap the data keys of secrets, as `id:base64`, separated by commas. The first one wraps, all unwrap. ' +
      'The same on all nodes.',
    { defaultText: 'files `KEYS_DIR/root-<id>.key`, created on the first start; the newest wraps', secret: true },
  ),

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

  graphqlIntrospection: setting('GRAPHQL_INTROSPECTION', flag, 'Whether clients may read the schema.', {
    default: 'true',
  }),
  graphiql: setting('GRAPHIQL', flag, 'Whether `/graphql` shows GraphiQL to a browser.', outsideProduction),
  graphqlMaxDepth: setting('GRAPHQL_MAX_DEPTH', integer(1, 1_000), 'Maximum nesting depth of a GraphQL operation.', {
    default: '12',
  }),
  graphqlMaxAliases: setting(
    'GRAPHQL_MAX_ALIASES',
    integer(0, 10_000),
    'Maximum number of aliases in a GraphQL operation.',
    {
      default: '30',
    },
  ),
  graphqlMaxCost: setting(
    'GRAPHQL_MAX_COST',
    integer(1, 10_000_000),
    'Maximum number of objects that a GraphQL operation may ask for, counted over nested lists. Ten plain values ' +
      'count as one object, a search as a thousand, a traversal and an export as five hundred.',
    {
      default: '10000',
    },
  ),
  graphqlMaxTokens: setting(
    'GRAPHQL_MAX_TOKENS',
    integer(1, 1_000_000),
    'Maximum number of lexical tokens in a GraphQL document.',
    {
      default: '2000',
    },
  ),
  eventPollMs: setting('EVENT_POLL_MS', integer(10, 60_000), 'Pause between checks for events of other nodes.', {
    default: '250',
  }),
} as const;

type Settings = typeof settings;
type Output<S> = S extends { schema: z.ZodType<infer T, string> } ? T : never;
type Read = {
  readonly [K in keyof Settings]: Settings[K] extends { default: string }
    ? Output<Settings[K]>
    : Output<Settings[K]> | undefined;
};

/** Settings whose default depends on other settings. They always have a value. */
type Derived = { readonly [K in 'passwordBlocklist' | 'graphiql' | 'keysDir']: NonNullable<Read[K]> } & {
  readonly isProduction: boolean;
  /** The store for files; `null` when they are kept in `DATA_DIR/files`. */
  readonly s3: S3Config | null;
};

/** An S3-compatible store. */
export interface S3Config {
  readonly bucket: string;
  /** `undefined`: Amazon's own. */
  readonly endpoint: string | undefined;
  readonly publicEndpoint: string | undefined;
  readonly region: string;
  /** Both or none. */
  readonly accessKeyId: string | undefined;
  readonly secretAccessKey: string | undefined;
  readonly forcePathStyle: boolean;
}

/**
 * The settings of the operator. Folders are absolute. `publicUrl` is `undefined` when it follows from the listening
 * port, `databaseUrl` when the embedded database is used, `smtpUrl` when mails are written to files.
 */
export type Config = Omit<Read, keyof Derived> & Derived;

/** The environment is invalid; `problems` has one sentence per wrong variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Row of the configuration table of the README. */
export interface ConfigVariable {
  name: string;
  /** Markdown. */
  default: string;
  description: string;
}

/** All variables in the order of the documentation. */
export const configVariables: readonly ConfigVariable[] = Object.values<Setting<unknown>>(settings).map((s) => ({
  name: s.variable,
  default: s.defaultText ?? `\`${s.default ?? ''}\``,
  description: s.description,
}));

function sentence({ variable, mustBe, secret }: Setting<unknown>, value: string): string {
  return secret ? `${variable} must be ${mustBe}.` : `${variable} must be ${mustBe}, not '${value}'.`;
}

function readAll(env: NodeJS.ProcessEnv): { values: Read; problems: string[] } {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [key, s] of Object.entries<Setting<unknown>>(settings)) {
    const value = env[s.variable] || s.default;
    if (value === undefined) continue;
    const read = s.schema.safeParse(value);
    if (read.success) values[key] = read.data;
    else problems.push(sentence(s, value));
  }
  return { values: values as Read, problems };
}

/**
 * Reads and checks all variables; an empty one counts as unset.
 * @throws ConfigError naming every variable that is wrong
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const { values, problems } = readAll(env);
  if (values.refreshTokenAbsoluteDays < values.refreshTokenIdleDays) {
    problems.push(
      `REFRESH_TOKEN_ABSOLUTE_DAYS must not be less than REFRESH_TOKEN_IDLE_DAYS (${values.refreshTokenIdleDays}).`,
    );
  }
  problems.push(...storeProblems(values));
  if (problems.length > 0) throw new ConfigError(problems);
  const isProduction = values.environment === 'production';
  const dataDir = path.resolve(values.dataDir);
  return {
    ...values,
    isProduction,
    dataDir,
    keysDir: values.keysDir ? path.resolve(values.keysDir) : path.join(dataDir, 'keys'),
    passwordBlocklist: values.passwordBlocklist ?? isProduction,
    graphiql: values.graphiql ?? !isProduction,
    s3: storeOf(values),
  };
}

const S3_SETTINGS = ['s3Endpoint', 's3PublicEndpoint', 's3AccessKeyId', 's3SecretAccessKey'] as const;

function storeProblems(values: Read): string[] {
  const given = S3_SETTINGS.find((key) => values[key] !== undefined);
  const problems: string[] = [];
  if (given && !values.s3Bucket) problems.push(`S3_BUCKET must be set when ${settings[given].variable} is set.`);
  if ((values.s3AccessKeyId === undefined) !== (values.s3SecretAccessKey === undefined))
    problems.push('S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set together.');
  return problems;
}

function storeOf(values: Read): S3Config | null {
  if (!values.s3Bucket) return null;
  return {
    bucket: values.s3Bucket,
    endpoint: values.s3Endpoint,
    publicEndpoint: values.s3PublicEndpoint,
    region: values.s3Region,
    accessKeyId: values.s3AccessKeyId,
    secretAccessKey: values.s3SecretAccessKey,
    forcePathStyle: values.s3ForcePathStyle ?? values.s3Endpoint !== undefined,
  };
}
