import { randomUUID } from 'node:crypto';
import type { Owner } from '../core/owner.ts';
import type { Task } from '../core/tasks.ts';
import type { Tx } from '../data/changes.ts';
import type { Connection } from '../generated/prisma/client.ts';
import type { Seal } from '../platform/keys/seal.ts';
import type { Credentials } from '../secrets/credentials.ts';
import { VaultFault } from '../secrets/envelope.ts';
import type { Vault } from '../secrets/vault.ts';
import { type ClientReference, clientOf, clientReferenceIn, findTarget } from './connection-target.ts';
import { type OAuthProvider, ProviderRefusal } from './oauth-provider.ts';
import { credentialIn } from './stored-credential.ts';

/** What the database keeps of a waiting revocation. Sealed: it has the tokens of a connection that is gone. */
interface SealedRevocation {
  id: string;
  sealed: string;
}

interface Revocation {
  client: ClientReference;
  accessToken: string;
  refreshToken: string | null;
}

// the waits add up to 16 hours: longer than a provider is down, and than most access tokens live
const TRIES = 12;

/** Tells providers that tokens are not used any more, after the connection was deleted and until they have heard it. */
export class Revocations implements Owner {
  readonly tasks: readonly Task[];
  readonly #revoke: Task<SealedRevocation>;
  readonly #deps: { credentials: Credentials; vault: Vault; provider: OAuthProvider; seal: Seal };

  constructor(deps: { credentials: Credentials; vault: Vault; provider: OAuthProvider; seal: Seal }) {
    this.#deps = deps;
    this.#revoke = { name: 'revoke_connection', tries: TRIES, run: (payload) => this.#run(payload) };
    this.tasks = [this.#revoke];
  }

  /** Has the tokens of a connection revoked once the change that deletes it has committed. */
  async ofConnection(tx: Tx, { id: connectionId, orgId, toolInstanceId }: Connection): Promise<void> {
    const { credentials, seal } = this.#deps;
    const target = await findTarget(tx, orgId, toolInstanceId);
    const client = target && clientReferenceIn(target);
    if (!client?.service.revocation_url) return;
    const value = await credentials.open(tx, orgId, { connectionId }).catch((error: unknown) => {
      // what does not open any more cannot be revoked either, and must not keep the connection
      if (error instanceof VaultFault) return null;
      throw error;
    });
    const credential = credentialIn(value);
    if (!credential || 'api_key' in credential) return;
    const id = randomUUID();
    const { access_token: accessToken, refresh_token: refreshToken } = credential;
    const revocation: Revocation = { client, accessToken, refreshToken };
    tx.enqueue(this.#revoke, { id, sealed: seal.seal(JSON.stringify(revocation), id).toString('base64') });
  }

  /** A provider that refuses has said all that it will. @throws ProviderRefusal to be tried again */
  async #run({ id, sealed }: SealedRevocation): Promise<void> {
    const { vault, provider, seal } = this.#deps;
    const opened = JSON.parse(seal.open(Buffer.from(sealed, 'base64'), id)) as Revocation;
    const client = await clientOf(vault, opened.client);
    const revoke = async (token: string, kind: 'access_token' | 'refresh_token') => {
      try {
        await provider.revoke(client, token, kind);
      } catch (error) {
        const isFinal = error instanceof ProviderRefusal && /^(refused|invalid_grant)$/.test(error.kind);
        if (!isFinal) throw error;
      }
    };
    if (opened.refreshToken) await revoke(opened.refreshToken, 'refresh_token');
    await revoke(opened.accessToken, 'access_token');
  }
}
