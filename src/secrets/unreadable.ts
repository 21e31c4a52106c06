import { conflict } from '../core/errors.ts';
import { VaultFault } from './envelope.ts';

/** Where faults are logged. */
export type OnFault = (error: unknown, what: string) => void;

/**
 * Opens something of a secret for a caller. What does not open is logged.
 * @throws RESOURCE_CONFLICT `secret_unreadable`
 */
export function openFor<T>(id: string, onFault: OnFault, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof VaultFault)) throw error;
    onFault(error, 'a secret does not open');
    throw conflict(
      'secret',
      id,
      'secret_unreadable',
      `What is stored of the secret '${id}' does not open. The operator's log says why.`,
    );
  }
}
