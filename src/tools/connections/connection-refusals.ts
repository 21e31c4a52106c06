import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Connection } from '../../generated/prisma/client.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import { showInInstance, toldOf } from './connection-changes.ts';
import type { AuthType } from './connection-state.ts';
import { findTarget } from './connection-target.ts';
import { credentialIn } from './stored-credential.ts';

/** A credential that was sent, and the connection that it is of. */
interface KnownCredential {
  orgId: string;
  connectionId: string;
  authType: AuthType;
  secret: string;
}

/**
 * What providers say of the credentials of connections. One that is refused is shown to everybody, and told once to
 * those in charge; one that is accepted again is shown as connected.
 */
export class ConnectionRefusals {
  readonly #deps: { sql: Sql; changes: Changes; credentials: Credentials };

  constructor(deps: { sql: Sql; changes: Changes; credentials: Credentials }) {
    this.#deps = deps;
  }

  /** The provider answered 401 to a key, or to an access token that had just been refreshed. */
  async refused(sent: KnownCredential): Promise<void> {
    await this.#change(sent, async (tx, connection) => {
      if (connection.status !== 'connected') return;
      const isKey = sent.authType === 'api_key';
      const lastError = `The provider answered 401: it does not accept the ${isKey ? 'API key' : 'access token'}.`;
      // the authorization server still vouches for a token: nobody can do more about that than the provider
      const status = isKey ? 'needs_reauth' : 'error';
      tx.update('connections', { id: connection.id }, { status, lastError });
      showInInstance(tx, connection, status);
      if (!isKey) {
        emitChange(tx, 'updated', 'connection', connection, { status });
        return;
      }
      const target = await findTarget(tx, connection.orgId, connection.toolInstanceId);
      if (!target) return;
      emitChange(
        tx,
        'needs_reauth',
        'connection',
        connection,
        { tool_instance_id: connection.toolInstanceId },
        {
          userIds: await toldOf(tx, connection),
          name: target.instance.name,
          of: target.tool.name,
        },
      );
    });
  }

  /** The provider accepted a credential that it had refused. */
  async accepted(sent: KnownCredential): Promise<void> {
    await this.#change(sent, async (tx, connection) => {
      if (connection.status !== 'needs_reauth' && connection.status !== 'error') return;
      const status = 'connected';
      tx.update('connections', { id: connection.id }, { status, lastError: null });
      showInInstance(tx, connection, status);
      emitChange(tx, 'updated', 'connection', connection, { status });
    });
  }

  /** Changes a connection, unless its credential was replaced since it was sent. */
  async #change(
    { orgId, connectionId, secret }: KnownCredential,
    work: (tx: Tx, connection: Connection) => Promise<void>,
  ): Promise<void> {
    const { sql, changes, credentials } = this.#deps;
    const [found] = await sql.query<{ toolInstanceId: string }>(
      statement`select tool_instance_id as "toolInstanceId" from connections where id = ${connectionId}`,
    );
    if (!found) return;
    await changes.run(systemCaller('connection_refusals'), async (tx) => {
      await tx.lock('tool_instances', { id: found.toolInstanceId }, 'no key update');
      const connection = await tx.lock('connections', { id: connectionId }, 'no key update');
      if (!connection) return;
      const stored = credentialIn(await credentials.open(tx, orgId, { connectionId }));
      const kept = stored && ('api_key' in stored ? stored.api_key : stored.access_token);
      if (kept === secret) await work(tx, connection);
    });
  }
}
