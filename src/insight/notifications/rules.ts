import type { Facts, Occasion } from '../../data/occasions.ts';
import { certificateEnds, tokenExpires } from '../../identity/views.ts';
import { minuteOf, oneLine } from '../../kernel/wording.ts';
import { accountIs, isUnavailable } from '../../models/views.ts';
import type { PageKind } from '../../platform/settings/app-pages.ts';
import { isInOrganization, isInWorkspace } from '../../tenancy/views.ts';
import { awaitsAuthorization } from '../../tools/views.ts';
import { awaitsRotation, secretExpires } from '../../vault/views.ts';
import type { NotificationCategory, NotificationSource, NotificationType, Priority } from './notification.words.ts';

/** An occasion, and who caused it. */
export interface NotifiedOccasion extends Occasion {
  facts: Facts;
  /** The name of who caused it. */
  by: string;
}

/**
 * Names that only the database knows stand in a text as one of these characters. No name contains them: invisible
 * characters are taken out of names.
 */
export const named = {
  organization: '\u0001',
  workspace: '\u0002',
  app: '\u0003',
  environment: '\u0004',
  release: '\u0005',
  user: '\u0006',
} as const;

/**
 * Who is notified: `subject`: the user that the occasion is about; `listed`: those in its facts; or whoever administers
 * its workspace or organization now; or its members whose accounts have no second factor.
 */
export type Recipients =
  | 'subject'
  | 'listed'
  | 'workspace administrators'
  | 'organization administrators'
  | 'members without a factor';

/** What has happened to the factors of a user. */
const factorNews: Readonly<Record<string, string>> = {
  totp_added: 'An app for one-time codes was added to your account.',
  totp_removed: 'The app for one-time codes was removed from your account.',
  passkey_added: 'A passkey was added to your account.',
  passkey_removed: 'A passkey was removed from your account.',
  reset: 'An administrator of your organization has removed all second factors of your account and ended its sessions.',
  recovery_codes: 'Your account has new recovery codes; earlier codes have ended.',
};

/** What is told of an occasion, and to whom. */
export interface NotificationRule {
  to: Recipients;
  category: NotificationCategory;
  source: NotificationSource;
  /** The kind of message and its priority. */
  tone: readonly [NotificationType, Priority] | ((of: NotifiedOccasion) => readonly [NotificationType, Priority]);
  title: (of: NotifiedOccasion) => string;
  message: (of: NotifiedOccasion) => string;
  /** The resource to open: its REST path, and the label of the link. */
  link?: (of: NotifiedOccasion) => readonly [path: string, label: string];
  /** Only some occasions of this type are told. */
  when?: (of: NotifiedOccasion) => boolean;
  /**
   * SQL on a notification `n`: whether it is still true. A newer one of the same resource replaces it. Without this
   * condition it tells what happened, which stays true as long as its recipient can open its place.
   */
  holds?: string;
  /** The page that its link opens. */
  page?: PageKind;
  /** When it is not true any more, known from the beginning. */
  until?: (of: NotifiedOccasion) => Date | null | undefined;
  /** It is mailed too, to whoever gets the notification. */
  isMailed?: true;
  /** Told to whoever caused it too: it is about their own account. */
  isOwnToo?: true;
  /** Details for programs, besides the data of the event. */
  metadata?: (of: NotifiedOccasion) => Readonly<Record<string, unknown>>;
}

const path = ({ orgId, workspaceId }: NotifiedOccasion): string =>
  `/v1/orgs/${orgId}${workspaceId ? `/workspaces/${workspaceId}` : ''}`;
const quoted = (name: string | undefined): string => `'${oneLine(name ?? '')}'`;
const isNoConsequence = ({ facts }: NotifiedOccasion): boolean => !facts.isConsequence;

const expiring = ({ facts: { daysLeft } }: NotifiedOccasion) => (daysLeft === 0 ? urgent : due);
const urgent = ['error', 'high'] as const;
const due = ['warning', 'normal'] as const;
// columns of a notification `n`, for conditions on whether it is still true
const RESOURCE = `(n.metadata->>'resource_id')`;
const EXPIRY = `(n.metadata->>'expires_at')::timestamptz`;
const ROLE = `(n.metadata->>'role')`;

/** What expires says so until then: another notification says that it has expired. */
const untilExpiry = ({ facts: { daysLeft, expiresAt } }: NotifiedOccasion) => (daysLeft === 0 ? null : expiresAt);

const aMember = {
  to: 'subject',
  category: 'member',
  source: 'workspaces',
  when: isNoConsequence,
} as const;
const inOrganization = `the organization '${named.organization}'`;
const inWorkspace = `the workspace '${named.workspace}' of '${named.organization}'`;

const memberRules = (kind: 'organization_member' | 'workspace_member', where: string): [string, NotificationRule][] => {
  const link: NotificationRule['link'] = (of) => [
    path(of),
    kind === 'workspace_member' ? 'Open workspace' : 'Open organization',
  ];
  const page = kind === 'workspace_member' ? 'workspace' : 'organization';
  const isMember = (role?: string): string =>
    kind === 'workspace_member'
      ? isInWorkspace('n.workspace_id', 'n.recipient_id', role)
      : isInOrganization('n.org_id', 'n.recipient_id', role);
  return [
    [
      `${kind}.created`,
      {
        ...aMember,
        tone: ['info', 'normal'],
        title: () => `You were added to ${where}`,
        message: ({ by }) => `${by} added you to ${where}. You may leave at any time.`,
        link,
        page,
        holds: isMember(),
      },
    ],
    [
      `${kind}.updated`,
      {
        ...aMember,
        tone: ['info', 'normal'],
        title: () => `Your role in ${where} changed`,
        message: ({ by, facts: { before, after } }) =>
          `${by} changed your role in ${where} from ${before} to ${after}.`,
        link,
        page,
        holds: isMember(ROLE),
        metadata: ({ facts: { before, after } }) => ({ role: after, previous_role: before }),
      },
    ],
    [
      `${kind}.deleted`,
      {
        ...aMember,
        tone: ['warning', 'normal'],
        title: () => `You were removed from ${where}`,
        message: ({ by }) => `${by} removed you from ${where}.`,
        holds: `not ${isMember()}`,
      },
    ],
  ];
};

const deployed = `'${named.app}' ${named.release} in '${named.environment}'`;
const aDeployment = {
  to: 'workspace administrators',
  category: 'deployment',
  source: 'environments',
  link: (of: NotifiedOccasion) => [`${path(of)}/environments/${of.environmentId}/deployments`, 'Open deployments'],
  page: 'deployments',
} as const satisfies Partial<NotificationRule>;

const aSecret = {
  to: 'listed',
  category: 'secret',
  source: 'secrets',
  isMailed: true,
  link: (of: NotifiedOccasion) => [`/v1/orgs/${of.orgId}/secrets/${of.resourceId}`, 'Open secret'],
  page: 'secret',
} as const satisfies Partial<NotificationRule>;
const secret = ({ facts, resourceId }: NotifiedOccasion): string => `The secret ${quoted(facts.name)} (${resourceId})`;

const tokenPath = ({ orgId, appId }: NotifiedOccasion): string =>
  `/v1/orgs/${orgId}${appId ? `/apps/${appId}/tokens` : '/api-tokens'}`;
const token = ({ facts }: NotifiedOccasion): string => `token ${quoted(facts.name)} (${facts.of}…)`;
const TOKEN_PAGES = { api_token: 'api_tokens', app_token: 'app_tokens' } as const;
const tokenRules = (kind: 'api_token' | 'app_token'): [string, NotificationRule][] => [
  [
    `${kind}.expiring`,
    {
      to: 'listed',
      category: 'token',
      source: 'tokens',
      isMailed: true,
      tone: expiring,
      title: ({ facts: { daysLeft } }) =>
        daysLeft === 0 ? 'A token has expired' : `A token expires in ${daysLeft} days`,
      message: (of) =>
        of.facts.daysLeft === 0
          ? `The ${token(of)} has expired. It can be refreshed for 30 days.`
          : `The ${token(of)} expires on ${minuteOf(of.facts.expiresAt!)} UTC. Refresh it, or issue a new one.`,
      link: (of) => [tokenPath(of), 'Open tokens'],
      page: TOKEN_PAGES[kind],
      holds: tokenExpires(RESOURCE, EXPIRY),
      until: untilExpiry,
    },
  ],
  [
    `${kind}.revoked`,
    {
      to: 'listed',
      category: 'token',
      source: 'tokens',
      when: ({ facts: { reason } }) => reason === 'revoked_by_admin',
      tone: ['warning', 'high'],
      title: () => 'An administrator revoked a token of yours',
      message: (of) => `${of.by} revoked the ${token(of)} in ${inOrganization}. It no longer works.`,
      link: (of) => [tokenPath(of), 'Open tokens'],
      page: TOKEN_PAGES[kind],
    },
  ],
];

const ofAccount = { to: 'subject', category: 'security', source: 'auth', isOwnToo: true, page: 'account' } as const;
const NOT_YOU = 'If it was not you, reset your password at once and tell your administrator.';
const own = ['/v1/users/me', 'Open account'] as const;
const ownLink = () => own;
const listOf = (heading: string, known: { names: readonly string[]; total: number } | undefined): string => {
  if (!known || known.total === 0) return '';
  const more = known.total - known.names.length;
  const names = known.names.map((name) => quoted(name)).join(', ');
  return ` ${heading}: ${names}${more > 0 ? ` and ${more} more` : ''}.`;
};
const remaining = ({ facts: { tokens, applications } }: NotifiedOccasion): string =>
  listOf('These API tokens keep working', tokens) + listOf('These applications still act for you', applications);
const whatRemains = ({ facts: { tokens, applications } }: NotifiedOccasion) => ({
  tokens: tokens?.names ?? [],
  tokens_total: tokens?.total ?? 0,
  applications: applications?.names ?? [],
  applications_total: applications?.total ?? 0,
});

/**
 * THE table of notifications (defaults §11): what is told of the events of the service, and of what no stream sends. An
 * occasion that is not here concerns nobody and costs nothing.
 *
 * Mail is one channel of it (`isMailed`): it goes to whoever gets the notification, so muting a category stops its
 * mails too. The mails about an account itself (a new password or address) are not sent from here: they go out in any
 * case, also to an address that the account no longer has.
 */
export const rules: ReadonlyMap<string, NotificationRule> = new Map<string, NotificationRule>([
  ...memberRules('organization_member', inOrganization),
  ...memberRules('workspace_member', inWorkspace),
  [
    'invitation.accepted',
    {
      to: 'listed',
      category: 'member',
      source: 'workspaces',
      tone: ['success', 'normal'],
      title: () => 'An invitation was accepted',
      message: () => `${named.user} accepted your invitation to ${inOrganization}.`,
      link: (of) => [`/v1/orgs/${of.orgId}/members`, 'Open members'],
      page: 'members',
    },
  ],
  [
    'user.arrived',
    {
      to: 'listed',
      category: 'member',
      source: 'auth',
      tone: ['info', 'low'],
      title: () => `Somebody new has signed in to ${inOrganization}`,
      message: ({ facts: { name } }) =>
        `${named.user} has signed in to ${inOrganization} with the identity provider ${quoted(name)} for the first ` +
        'time, and is a member now.',
      link: (of) => [`/v1/orgs/${of.orgId}/members`, 'Open members'],
      page: 'members',
    },
  ],
  [
    'deployment.created',
    {
      ...aDeployment,
      tone: ['success', 'normal'],
      title: () => `Deployed: ${deployed}`,
      message: ({ by }) => `${by} deployed ${deployed}, in ${inWorkspace}.`,
    },
  ],
  [
    'deployment.rolled_back',
    {
      ...aDeployment,
      tone: ['warning', 'high'],
      title: () => `Rolled back: ${deployed}`,
      message: ({ by }) => `${by} rolled back to ${deployed}, in ${inWorkspace}.`,
    },
  ],
  [
    'connection.needs_reauth',
    {
      to: 'listed',
      category: 'connection',
      source: 'connections',
      isMailed: true,
      tone: ['action_required', 'high'],
      title: () => 'A connection must be authorized again',
      message: ({ facts, data }) =>
        `The connection of ${quoted(facts.name)} (${String(data?.tool_instance_id)}) to ${oneLine(facts.of ?? '')} ` +
        'must be authorized again: the provider no longer accepts its credential. ' +
        'Open the tool instance and connect it.',
      link: (of) => [`${path(of)}/tool-instances/${String(of.data?.tool_instance_id)}`, 'Open tool instance'],
      page: 'tool_instance',
      holds: awaitsAuthorization(RESOURCE),
    },
  ],
  [
    'secret.expiring',
    {
      ...aSecret,
      tone: expiring,
      title: ({ facts: { daysLeft, expiresAt } }) =>
        daysLeft === 0 ? 'A secret has expired' : `A secret expires on ${minuteOf(expiresAt!).slice(0, 10)}`,
      message: (of) =>
        of.facts.daysLeft === 0
          ? `${secret(of)} has expired: the service no longer uses it. Rotate it and give it a new date.`
          : `${secret(of)} expires on ${minuteOf(of.facts.expiresAt!)} UTC: the service does not use it from ` +
            'then on. Rotate it and give it a new date.',
      holds: secretExpires(RESOURCE, EXPIRY),
      until: untilExpiry,
    },
  ],
  [
    'secret.rotation_due',
    {
      ...aSecret,
      tone: ['action_required', 'normal'],
      title: () => 'A secret is due for rotation',
      message: (of) => `${secret(of)} was not rotated for as long as its reminder allows. Rotate it.`,
      holds: awaitsRotation(RESOURCE),
    },
  ],
  ...tokenRules('api_token'),
  ...tokenRules('app_token'),
  [
    'provider_account.degraded',
    {
      to: 'organization administrators',
      category: 'model',
      source: 'models',
      tone: ['warning', 'high'],
      title: () => 'A provider account is degraded',
      message: ({ facts }) => `The provider account ${quoted(facts.name)} of '${named.organization}' is degraded.`,
      link: (of) => [`/v1/orgs/${of.orgId}/provider-accounts/${of.resourceId}`, 'Open provider account'],
      page: 'provider_account',
      holds: accountIs(RESOURCE, 'degraded'),
    },
  ],
  [
    'provider_account.updated',
    {
      to: 'organization administrators',
      category: 'model',
      source: 'models',
      when: ({ data }) => data?.status === 'error',
      tone: ['error', 'high'],
      title: () => 'A provider account is unavailable',
      message: ({ facts }) =>
        `The provider refuses the credentials of the account ${quoted(facts.name)} of '${named.organization}'.`,
      link: (of) => [`/v1/orgs/${of.orgId}/provider-accounts/${of.resourceId}`, 'Open provider account'],
      page: 'provider_account',
      holds: accountIs(RESOURCE, 'error'),
    },
  ],
  [
    'webhook.disabled',
    {
      to: 'organization administrators',
      category: 'system',
      source: 'system',
      isMailed: true,
      tone: ['action_required', 'high'],
      title: () => 'A webhook was disabled',
      message: ({ facts, data }) =>
        `The webhook ${quoted(facts.name)} of '${named.organization}' was disabled: ` +
        (data?.reason === 'failing'
          ? 'nothing could be delivered for five days. Mend its receiver, and enable it: it goes on where it was.'
          : 'the user whom it acts for no longer has access. The administrator who enables it takes that place.'),
      link: (of) => [`/v1/orgs/${of.orgId}/webhooks/${of.resourceId}`, 'Open webhook'],
      page: 'webhook',
      holds: `exists (select from webhooks w where w.id = ${RESOURCE} and not w.is_enabled
        and w.disabled_reason is not null)`,
    },
  ],
  [
    'audit_stream.disabled',
    {
      to: 'organization administrators',
      category: 'system',
      source: 'system',
      isMailed: true,
      tone: ['action_required', 'high'],
      title: () => 'An audit stream was disabled',
      message: ({ facts, data }) =>
        `The audit stream ${quoted(facts.name)} of '${named.organization}' was disabled: ` +
        (data?.reason === 'failing'
          ? 'nothing could be delivered for five days. Mend its receiver, and enable it: it goes on where it was.'
          : 'the user whom it acts for no longer has access. The administrator who enables it takes that place.'),
      link: (of) => [`/v1/orgs/${of.orgId}/audit-streams/${of.resourceId}`, 'Open audit stream'],
      page: 'audit_stream',
      holds: `exists (select from audit_streams s where s.id = ${RESOURCE} and not s.is_enabled
        and s.disabled_reason is not null)`,
    },
  ],
  [
    'model.updated',
    {
      to: 'organization administrators',
      category: 'model',
      source: 'models',
      when: ({ data }) => data?.status === 'unavailable',
      tone: ['error', 'high'],
      title: () => 'A model is unavailable',
      message: ({ facts, resourceId }) =>
        `The model ${quoted(facts.name)} (${resourceId}) of '${named.organization}' is unavailable: none of its ` +
        'targets is healthy.',
      link: (of) => [`/v1/orgs/${of.orgId}/model-catalog`, 'Open models'],
      page: 'models',
      holds: isUnavailable('n.org_id', RESOURCE),
    },
  ],
  [
    'user.password_changed',
    {
      ...ofAccount,
      tone: ['warning', 'high'],
      title: () => 'Your password was changed',
      message: (of) => `Your password was changed and your other sessions were ended. ${NOT_YOU}${remaining(of)}`,
      link: ownLink,
      metadata: whatRemains,
    },
  ],
  [
    'user.password_reset',
    {
      ...ofAccount,
      tone: ['warning', 'high'],
      title: () => 'Your password was reset',
      message: (of) =>
        `Your password was reset with a mailed link and all sessions were ended. ${NOT_YOU}${remaining(of)}`,
      link: ownLink,
      metadata: whatRemains,
    },
  ],
  [
    'user.email_changed',
    {
      ...ofAccount,
      tone: ['warning', 'high'],
      title: () => 'Your e-mail address was changed',
      message: ({ facts }) =>
        `The e-mail address of your account is now ${oneLine(facts.after ?? '', 320)}. ` +
        'If it was not you, tell your administrator.',
      link: ownLink,
    },
  ],
  [
    'organization.glass_broken',
    {
      to: 'listed',
      category: 'security',
      source: 'auth',
      isMailed: true,
      isOwnToo: true,
      tone: ['warning', 'urgent'],
      title: () => `An owner has opened ${inOrganization} with a password`,
      message: ({ facts: { reason, expiresAt } }) =>
        `${named.user} has opened ${inOrganization} with the password, although it demands single sign-on, until ` +
        `${minuteOf(expiresAt!)} UTC. The reason given: ${oneLine(reason ?? '', 500)}`,
      link: (of) => [path(of), 'Open organization'],
      page: 'organization',
    },
  ],
  [
    'organization.factor_required',
    {
      to: 'members without a factor',
      category: 'security',
      source: 'auth',
      isMailed: true,
      tone: ['warning', 'high'],
      title: () => `The organization '${named.organization}' demands a second factor`,
      message: ({ facts: { daysLeft, expiresAt } }) =>
        `Your account has no second factor. ${
          daysLeft === 0 ? 'Now' : `After ${minuteOf(expiresAt!)} UTC`
        }, you reach ${inOrganization} only with one: add it to your account, at /account/factors, or sign in at the ` +
        'identity provider of the organization.',
      link: (of) => [path(of), 'Open organization'],
      page: 'organization',
    },
  ],
  [
    'identity_provider.certificate_ending',
    {
      to: 'organization administrators',
      category: 'system',
      source: 'auth',
      isMailed: true,
      tone: ({ facts: { daysLeft } }) => (daysLeft === 1 ? urgent : due),
      title: ({ facts: { expiresAt } }) =>
        `The certificate of an identity provider ends on ${minuteOf(expiresAt!).slice(0, 10)}`,
      message: ({ facts: { name, expiresAt } }) =>
        `The last certificate of the identity provider ${quoted(name)} of '${named.organization}' ends on ` +
        `${minuteOf(expiresAt!)} UTC: nobody signs in with it from then on. Add its next one behind it.`,
      link: (of) => [`/v1/orgs/${of.orgId}/identity-providers/${of.resourceId}`, 'Open identity provider'],
      page: 'identity_provider',
      // until it ends
      holds: certificateEnds(RESOURCE, 'n.expires_at'),
      until: untilExpiry,
    },
  ],
  [
    'identity_provider.metadata_changed',
    {
      to: 'listed',
      category: 'security',
      source: 'auth',
      isMailed: true,
      tone: ['warning', 'normal'],
      title: ({ facts: { reason } }) => `An identity provider has new ${reason}`,
      message: ({ facts: { name, reason } }) =>
        `The metadata of the identity provider ${quoted(name)} of '${named.organization}' has new ${reason}, which ` +
        'are in use now. The activity of the organization says which.',
      link: (of) => [`/v1/orgs/${of.orgId}/identity-providers/${of.resourceId}`, 'Open identity provider'],
      page: 'identity_provider',
    },
  ],
  [
    'user.identity_linked',
    {
      ...ofAccount,
      tone: ['warning', 'high'],
      title: () => 'There is a new way to sign in to your account',
      message: ({ facts }) =>
        `You can sign in with the identity provider ${quoted(facts.name)} from now on. ${NOT_YOU}`,
      link: ownLink,
    },
  ],
  [
    'user.factors_changed',
    {
      ...ofAccount,
      isMailed: true,
      tone: ['warning', 'high'],
      title: () => 'A second factor of your account has changed',
      message: ({ facts }) => `${factorNews[facts.reason ?? ''] ?? 'It has changed.'} ${NOT_YOU}`,
      link: ownLink,
    },
  ],
  [
    'user.address_lost',
    {
      ...ofAccount,
      tone: ['warning', 'high'],
      title: () => 'Somebody else has proven the e-mail address of your account',
      message: () =>
        'You never confirmed the e-mail address of your account, and somebody else has proven that it is theirs. ' +
        'Sign in with your user name from now on, and give your account an address of your own.',
      link: ownLink,
    },
  ],
  [
    'session.refresh_token_reused',
    {
      ...ofAccount,
      tone: ['warning', 'urgent'],
      title: () => 'A session was ended: its refresh token was used twice',
      message: () =>
        'A refresh token that had been replaced was used again, so somebody may have a copy of it. ' +
        `The session was ended. Sign in again, and change your password if you do not know why.`,
      link: ownLink,
    },
  ],
  ...(['api_token', 'app_token'] as const).map((kind): [string, NotificationRule] => [
    `${kind}.refresh_token_reused`,
    {
      to: 'listed',
      category: 'security',
      source: 'tokens',
      isOwnToo: true,
      tone: ['warning', 'urgent'],
      title: () => 'A token was revoked: its refresh token was used twice',
      message: (of) =>
        `The refresh token of the ${token(of)} was used again after it had been replaced, so somebody may have a ` +
        'copy of it. The token and its successors were revoked. Issue a new one.',
      link: (of) => [tokenPath(of), 'Open tokens'],
      page: TOKEN_PAGES[kind],
    },
  ]),
]);
