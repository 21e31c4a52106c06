import { conflict } from '../../kernel/errors.ts';
import { attempt } from './envelope.ts';

/** Where faults are logged. */
export type OnVaultFault = (error: unknown, what: string) => void;

/**
 * Opens something of a secret for a caller. What does not open is logged.
 * @throws RESOURCE_CONFLICT `secret_unreadable`
 */
export function openFor<T>(id: string, onFault: OnVaultFault, open: () => T): T {
  const opened = attempt(open, (fault) => onFault(fault, 'a secret cannot be decrypted'));
  if (opened !== null) return opened;
  const message = `The stored value of the secret '${id}' cannot be decrypted. The reason is in the operator's log.`;
  throw conflict('secret', id, 'secret_unreadable', message);
}
