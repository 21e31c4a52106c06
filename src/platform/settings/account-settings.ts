import { isRedirectTarget } from '../../kernel/redirect-targets.ts';
import { flag, integer, list, namedKeys, setting, text } from '../../setting.ts';

/** `*`, `none`, or a name with a dot as a browser writes it, with a port if it is not the usual one. */
const isClientHost = (item: string): boolean =>
  item === '*' ||
  item === 'none' ||
  (/^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d{1,5})?$/.test(item) &&
    URL.canParse(`https://${item}`) &&
    new URL(`https://${item}`).host === item);

/** Accounts, tokens and keys. */
export const accountSettings = {
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
    'Maximum number of live tokens of an organization; 0 = no limit. Lists of tokens in REST have at most 10,000.',
    { default: '5000' },
  ),
  maxOrganizationsPerUser: setting(
    'MAX_ORGANIZATIONS_PER_USER',
    integer(0, 1_000_000),
    'Maximum number of organizations that a user may have created; 0 = no limit.',
    { default: '100' },
  ),
  passwordBlocklist: setting('PASSWORD_BLOCKLIST', flag, 'Whether the most common passwords are refused.', {
    defaultText: 'true when `NODE_ENV=production`, else false',
  }),
  ssoRedirectUris: setting(
    'SSO_REDIRECT_URIS',
    list('origins, or addresses without query, between commas', isRedirectTarget),
    'Where a sign-in at an identity provider may send a browser afterwards, like `https://app.example.com` for all ' +
      'of its pages, or `https://app.example.com/signed-in`.',
    { default: '', defaultText: "none but the service's own pages" },
  ),
  oauthClientHosts: setting(
    'OAUTH_CLIENT_HOSTS',
    list('`*`, `none`, or host names between commas, each with a port if it is not 443', isClientHost),
    "Hosts of other people's programs, whose `client_id` is the https address of a document that describes them: `*` " +
      'for all public hosts, names like `claude.ai, vscode.dev`, or `none`: then only applications that ' +
      'organizations register sign people in. A named host may have an address that `OUTBOUND_ALLOW` opens.',
    { default: '*', defaultText: '`*`' },
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
  backupPassphrase: setting(
    'BACKUP_PASSPHRASE',
    { mustBe: 'at least 12 characters long', schema: text.schema.refine((value) => value.length >= 12) },
    'Seals the keys in a backup, for `npm run backup` and `npm run restore`. A service does not need it.',
    { defaultText: 'none: backups have no keys', secret: true },
  ),
  rootKeys: setting(
    'ROOT_KEYS',
    namedKeys,
    'Keys that wrap the data keys of secrets, as `id:base64`, separated by commas. The first one wraps, all unwrap. ' +
      'The same on all nodes.',
    { defaultText: 'files `KEYS_DIR/root-<id>.key`, created on the first start; the newest wraps', secret: true },
  ),
} as const;
