let common: Promise<ReadonlySet<string>> | undefined;

/** The most common passwords, in lower case; read at first use, because they are many. */
export const commonPasswords = (): Promise<ReadonlySet<string>> => (common ??= read());

async function read(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  return new Set(
    dictionary['passwords-common']
      .filter((entry): entry is string => typeof entry === 'string')
      .map((entry) => entry.toLowerCase()),
  );
}
