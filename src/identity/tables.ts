import type { GroupTables } from '../data/lent-tables.ts';

/** Accounts and all ways in. */
export const tables: GroupTables = {
  owns: [
    'users',
    'email_tokens',
    'login_failures',
    'sessions',
    'refresh_tokens',
    'totp_factors',
    'passkeys',
    'recovery_codes',
    'used_challenges',
    'api_tokens',
    'identity_providers',
    'identity_provider_domains',
    'identity_provider_tests',
    'identity_links',
    'identity_grants',
    'sso_states',
    'sso_assertions',
    'sso_codes',
    'applications',
    'oauth_grants',
    'oauth_records',
    'scim_tokens',
    'scim_users',
    'scim_groups',
    'scim_group_members',
  ],
  lends: {
    users: {
      access: 'whether the account behind a credential is active',
      tenancy: 'members are shown with their names, join while the account is locked, and invite while it is active',
      'tenancy (writes)': 'where a user starts, and which organization manages the account',
      knowledge: 'a link works while the account of its maker is active',
      live: 'who is present is shown with a name, and a webhook sends nothing for an account that is not active',
      insight: 'who gets a mail, in which language and where',
    },
    email_tokens: {
      'tenancy (writes)': 'a change of the address that waits for its link ends when its user becomes a member',
    },
    sessions: {
      access: 'a session is looked up with each credential',
      'access (writes)': 'when it was last used',
      knowledge: 'a link works while the session does that a grant was given for',
    },
    api_tokens: {
      access: 'a token is looked up with each credential',
      'access (writes)': 'when it was last used',
      knowledge: 'a link works while the token of its maker does',
    },
    oauth_grants: {
      access: 'a grant is looked up with each token that was issued for it',
      'access (writes)': 'when it was last used',
      knowledge: 'a link works while the grant of its maker does',
    },
    totp_factors: {
      access: 'an organization may demand a second factor of its members',
    },
    passkeys: {
      access: 'the same: a passkey is a second factor',
    },
    identity_providers: {
      access: 'an organization may demand that one of its own vouches for a credential',
    },
    identity_links: {
      access: 'an organization may demand that a provider of its own knows the user of a token',
      tenancy: 'an invitation to who signs in by a provider',
    },
    identity_provider_domains: {
      tenancy: 'addresses of proven domains are shown',
    },
  },
};
