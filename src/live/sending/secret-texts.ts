import { systemCaller } from '../../kernel/system-caller.ts';
import type { Vault } from '../../vault/secrets/vault.ts';

/** A secret whose entries the service sends. */
export interface TextSecret {
  orgId: string;
  /** `null` for none. */
  reference: string | null;
  /** Names that no entry may have. */
  reserved: RegExp;
}

/**
 * The entries of a secret as texts, names in lower case. `null` if it is gone, disabled or expired, or has another one.
 */
export async function textsOf(
  { vault, onFault }: { vault: Vault; onFault: (error: unknown, what: string) => void },
  task: string,
  { orgId, reference, reserved }: TextSecret,
): Promise<Record<string, string> | null> {
  if (reference === null) return {};
  try {
    const value = await vault.open(systemCaller(task), orgId, reference);
    const texts = Object.fromEntries(
      Object.entries(value).map(([name, text]) => [name.toLowerCase(), typeof text === 'string' ? text : '']),
    );
    return Object.entries(texts).some(([name, text]) => text === '' || reserved.test(name)) ? null : texts;
  } catch (error) {
    onFault(error, `a secret of ${task} could not be opened`);
    return null;
  }
}
