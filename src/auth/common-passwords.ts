import { dictionary } from '@zxcvbn-ts/language-common';

let common: ReadonlySet<string> | undefined;

/** The most common passwords, in lower case; read at first use. */
export function commonPasswords(): ReadonlySet<string> {
  common ??= new Set(
    dictionary['passwords-common']
      .filter((entry): entry is string => typeof entry === 'string')
      .map((entry) => entry.toLowerCase()),
  );
  return common;
}
