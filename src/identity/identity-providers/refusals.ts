import { ApiError } from '../../kernel/errors.ts';

/** Why a provider's user is not signed in, in the words of `details.reason`, with what is said of each. */
export const refusalReasons = {
  provider_disabled: 'The identity provider is switched off.',
  email_missing: 'The identity provider gave no usable e-mail address: its administrator has to add one.',
  domain_not_claimed:
    'The e-mail address is in no domain of the identity provider: an administrator of the organization has to add it.',
  account_not_linked:
    'No account of this organization belongs to this identity. Ask an administrator of the organization.',
  account_inactive: 'The account is deactivated.',
  already_linked:
    'The account with this e-mail address belongs to another identity of this provider. An administrator of the ' +
    'organization has to unlink that one first.',
  proof_required:
    'The account with this e-mail address is not linked to this identity. An administrator of the organization has ' +
    'to prove the domain of the address, or to link the account.',
  role_above_provider:
    "The account's role is above that of the administrator who last changed the identity provider: an owner has to " +
    'look at its configuration and save it with a change.',
} as const;

/** A reason of a refusal. */
export type RefusalReason = keyof typeof refusalReasons;

/** 403, with the reason (defaults §1). It says nothing of accounts of other organizations. */
export const signInRefused = (reason: RefusalReason): ApiError =>
  new ApiError('FORBIDDEN', { required_permission: 'organization:access', reason }, refusalReasons[reason]);
