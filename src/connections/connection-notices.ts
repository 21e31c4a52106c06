import type { AccountMail } from '../auth/account-mail.ts';
import type { Tx } from '../data/changes.ts';
import type { Connection } from '../generated/prisma/client.ts';
import { peopleInCharge } from '../organizations/people-in-charge.ts';
import type { Target } from './connection-target.ts';

/** Tells people about connections that only they can repair, by mail. */
export class ConnectionNotices {
  readonly #mail: AccountMail;

  constructor(mail: AccountMail) {
    this.#mail = mail;
  }

  /** The provider does not accept the refresh token any more. Goes to the creator, or else to the owners. */
  async needsReauth(tx: Tx, connection: Connection, { instance, tool }: Target): Promise<void> {
    const sentence =
      `The connection of '${instance.name}' (${instance.id}) to ${tool.name} must be authorized again: the provider ` +
      'does not accept its refresh token any more. Open the tool instance and connect it.';
    for (const to of await peopleInCharge(tx, connection, 'connection:read'))
      this.#mail.connectionNotice(tx, to, 'A connection must be authorized again', sentence);
  }
}
