/** Why an account may be linked to an identity without anybody's help. */
export const linkReasons = {
  proven_domain: 'The organization has proven the domain of the address.',
  verified_email: 'The provider and the account have the same verified e-mail address.',
  managed_account: 'The organization manages the account.',
} as const;

export type LinkReason = keyof typeof linkReasons;
