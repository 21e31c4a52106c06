import { randomBytes } from 'node:crypto';
import { findRow, type QueryRunner } from '../../data/find-row.ts';
import type { Columns } from '../../data/tables.ts';
import { checkConstraints } from '../../kernel/constraints.ts';
import type { VerifiedIdentity } from '../sso/verified-identity.ts';
import type { KnownAccount } from './sign-in-admission.ts';

type Profile = Pick<KnownAccount, 'fullName' | 'avatarUrl' | 'locale'>;

const LONGEST_NAME = 50;

/** What a provider says of a profile, as far as a profile can have it. */
function profileOf({ fullName, avatarUrl, locale }: VerifiedIdentity): Partial<Profile> {
  const fits = (text: string | undefined, bounds: object): text is string =>
    text !== undefined && text !== '' && checkConstraints(text, bounds).length === 0;
  return {
    ...(fits(fullName, { maxLength: 255 }) && { fullName }),
    ...(fits(avatarUrl, { maxLength: 2_048, format: 'uri' }) && { avatarUrl }),
    ...(fits(locale, { maxLength: 35, pattern: '[A-Za-z0-9-]+' }) && { locale }),
  };
}

/** The fields of a profile that a provider says otherwise. */
export function newsOf(identity: VerifiedIdentity, known: Profile): Partial<Profile> {
  const entries = Object.entries(profileOf(identity)) as [keyof Profile, string][];
  return Object.fromEntries(entries.filter(([name, value]) => known[name] !== value));
}

/** The profile of a new account. */
export const newProfile = (identity: VerifiedIdentity): Columns<'users'> => profileOf(identity);

/**
 * A user name for a new account: what the provider calls the user, or the address up to its `@`; with an ending if
 * somebody has it.
 */
export async function freeUsername(
  db: QueryRunner,
  { username }: Pick<VerifiedIdentity, 'username'>,
  email: string,
): Promise<string> {
  const given = (username ?? email)
    .split('@')[0]!
    .normalize('NFKC')
    .replaceAll(/[^A-Za-z0-9_.+-]+/g, '-');
  const cut = given.replace(/^[-.]+/, '').slice(0, LONGEST_NAME);
  const name = cut.length < 3 ? `user-${cut}` : cut;
  if (cut.length >= 3 && !(await findRow(db, 'users', { usernameKey: name.toLowerCase() }))) return name;
  return `${name}-${randomBytes(4).toString('hex')}`;
}
