import { type Language, languageNames } from '../kernel/languages.ts';
import { roles } from '../kernel/roles.ts';
import type { TokenGrant } from '../kernel/token-grant.ts';
import { wordEnum } from './word-enum.ts';

const roleMeanings = {
  owner: 'The highest role. It alone makes others owners.',
  admin: 'Manages members and settings.',
  editor: 'Changes what all have made.',
  member: 'Makes things, and changes what is their own.',
  viewer: 'The lowest role: it reads.',
} as const;

export const RoleEnum = wordEnum('Role', 'A role in an organization or a workspace.', roleMeanings, roles.toReversed());

export const UserRoleEnum = wordEnum('UserRole', 'A role of a user: in the organization, or on the platform.', {
  ...roleMeanings,
  platform_admin: 'Administers the whole platform.',
});

export const PrincipalTypeEnum = wordEnum('PrincipalType', 'Who acted.', {
  user: 'A user who has signed in.',
  api_token: 'A program with an API token of a user.',
  app_token: 'A program with a token of an app.',
  service_account: 'Kept for accounts of services: there are none yet.',
  system: 'The service itself.',
  anonymous: 'Somebody who has not signed in, for example with a mailed link.',
});

export const ApiTokenTypeEnum = wordEnum<TokenGrant['type']>('ApiTokenType', 'What kind of token it is.', {
  pat: 'An API token of a user.',
  app: 'A token of an app.',
});

export const TextLanguageEnum = wordEnum<Language>(
  'TextLanguage',
  'A language that a text can be said to be in, as ISO 639-1.',
  languageNames,
);
