import { isPermission, permissionTable } from '../../access/permissions.ts';
import { isWord } from '../../access/scopes.ts';
import type { Permission } from '../../kernel/resources.ts';

const words: Readonly<Record<string, string>> = {
  read: 'Read what you may read',
  write: 'Read, create and change what you may, except what is sensitive',
  admin: 'Do everything that you may do, except creating tokens, applications, webhooks and audit streams',
};

/** Scopes that say who the user is. */
export const identityScopes: Readonly<Record<string, string>> = {
  openid: 'Know who you are',
  profile: 'See your name and picture',
  email: 'See your e-mail address',
  offline_access: 'Go on when you have signed out',
};

/** What would go on sending after the grant: see `src/live/sending/refuse-applications.ts`. */
const SENDS_ON: ReadonlySet<string> = new Set<Permission>(['webhook:create', 'audit_stream:create']);

/**
 * What an application may ask for: names of permissions, and the words. What creates tokens is never granted, nor
 * what creates or changes applications: such tokens would outlive what was granted. Nor is what creates webhooks and
 * audit streams.
 */
export const grantableScopes: readonly string[] = [
  ...Object.keys(words).filter(isWord),
  ...Object.entries(permissionTable)
    .filter(([name, { weight }]) => weight !== 'minting' && !SENDS_ON.has(name))
    .map(([name]) => name),
];

const VERBS: Readonly<Record<string, string>> = {
  access: 'Reach',
  execute: 'Use',
  read: 'See',
  reveal: 'See the values of',
  subscribe: 'Follow',
  update: 'Change',
};
/** Where the plural of the name of a resource says nothing to people. */
const NOUNS: Readonly<Record<string, string>> = {
  activity: 'the activity',
  analytics: 'the numbers of use',
  api_token: 'API tokens',
  organization: 'the organization',
  organization_recipe: 'recipes of the organization',
  presence: 'who is present',
  scim_token: 'tokens of directories',
  sync: 'what happens',
  user: 'accounts of users',
};
const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
const plural = (noun: string): string => (noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : `${noun}s`);

/** A scope in plain words. */
export function meaningOf(scope: string): string {
  const known = words[scope] ?? identityScopes[scope];
  if (known) return known;
  const [resource = '', verb = ''] = scope.split(':');
  return `${VERBS[verb] ?? capital(verb)} ${NOUNS[resource] ?? plural(resource.replaceAll('_', ' '))}`;
}

/** Whether somebody should think twice. */
export const isSensitive = (scope: string): boolean =>
  scope === 'admin' || (isPermission(scope) && permissionTable[scope as Permission].weight === 'sensitive');

/** Whether a scope reaches the account of the user, which is the same in all organizations. The words reach all. */
export const isAboutAccount = (scope: string): boolean => isWord(scope) || scope.startsWith('user:');

/** Whether users are asked about a scope whoever asks for it. */
export const isAlwaysAsked = (scope: string): boolean => isAboutAccount(scope) || isSensitive(scope);
