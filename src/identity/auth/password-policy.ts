import { invalidInput } from '../../kernel/errors.ts';
import { commonPasswords } from './common-passwords.ts';

/** The schema checks the length. There are no composition rules (defaults §1). */
export const passwordBounds = { minLength: 8, maxLength: 128, sensitive: true } as const;

/** @throws InputError when the password is the user's own name or address, or one of the most common ones */
export async function demandGoodPassword(
  password: string,
  user: { username: string; email: string },
  useBlocklist: boolean,
  path: string[],
): Promise<void> {
  const lower = password.toLowerCase();
  if (lower === user.username.toLowerCase() || lower === user.email.toLowerCase()) {
    throw invalidInput(path, 'the password must not be the user name or the e-mail address');
  }
  if (useBlocklist && (await commonPasswords()).has(lower))
    throw invalidInput(path, 'this password is too common: choose another');
}
