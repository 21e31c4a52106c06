import { conflict } from '../../kernel/errors.ts';
import { attempt } from './envelope.ts';

/** Where faults are logged. */
export type OnVaultFault = (error: unknown, what: string) => void;

/**
 * Opens something of a secret for a caller. What does not open is logged.
 * @throws RESOURCE_CONFLICT `secret_unreadable`
 */
export function openFor<T>(id: string, onFault: OnVaultFault, open: () => T): T {
  const opened = attempt(open, (fault) => onFault(fault, 'a secret does not open'));
  if (opened !== null) return opened;
  const message = `What is stored of the secret '${id}' does not open. The operator's log says why.`;
  throw conflict('secret', id, 'secret_unreadable', message);
}
