import { randomUUID } from 'node:crypto';
import type { Tx } from '../../data/tx.ts';
import type { Connection } from '../../generated/prisma/client.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { Task } from '../../kernel/tasks.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import { clientSecretIn } from '../../platform/outbound/client-secret.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import { referenceKey, type Vault } from '../../vault/secrets/vault.ts';
import { type ClientReference, clientReferenceIn, findTargets } from './connection-target.ts';
import { type OAuthClient, type OAuthProvider, ProviderRefusal } from './oauth-provider.ts';
import { credentialIn } from './stored-credential.ts';

/** What the database keeps of a waiting revocation. Sealed: it has the tokens of a connection that is gone. */
interface SealedRevocation {
  id: string;
  sealed: string;
}

/** Everything that the provider asks for: whatever the connection belonged to may be gone when it is asked. */
interface Revocation {
  client: OAuthClient;
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
    this.#revoke = { name: 'revoke_tokens', tries: TRIES, run: (payload) => this.#run(payload) };
    this.tasks = [this.#revoke];
  }

  /**
   * Has the tokens of connections revoked once the change that deletes them has committed, each by a job of its own: a
   * provider that is down delays no other. The number of statements does not depend on that of the connections.
   *
   * Left out is what cannot be revoked: tokens that do not open any more, and those of a client whose secret is not
   * usable.
   */
  async enqueue(tx: Tx, connections: readonly Connection[]): Promise<void> {
    const { credentials, seal } = this.#deps;
    const targets = await findTargets(
      tx,
      connections.map(({ toolInstanceId }) => toolInstanceId),
    );
    const revocable = connections.flatMap(({ id, toolInstanceId }) => {
      const target = targets.get(toolInstanceId);
      const reference = target && clientReferenceIn(target);
      return reference?.service.revocation_url ? [{ connectionId: id, reference }] : [];
    });
    if (revocable.length === 0) return;
    const ids = revocable.map(({ connectionId }) => connectionId);
    const stored = await credentials.openOfConnections(tx, ids);
    const granted = revocable.flatMap(({ connectionId, reference }) => {
      const credential = credentialIn(stored.get(connectionId) ?? null);
      return credential && 'access_token' in credential ? [{ reference, credential }] : [];
    });
    const clientOf = await this.#clients(
      tx,
      granted.map(({ reference }) => reference),
    );
    for (const { reference, credential } of granted) {
      const client = clientOf(reference);
      if (!client) continue;
      const id = randomUUID();
      const { access_token: accessToken, refresh_token: refreshToken } = credential;
      const revocation: Revocation = { client, accessToken, refreshToken };
      tx.enqueue(this.#revoke, { id, sealed: seal.seal(JSON.stringify(revocation), id).toString('base64') });
    }
  }

  /** Reads the secrets of clients. @returns what gives a client; `null` if its secret is not usable */
  async #clients(tx: Tx, references: readonly ClientReference[]): Promise<(of: ClientReference) => OAuthClient | null> {
    const wanted = references.flatMap(({ orgId, clientSecretRef }) =>
      clientSecretRef === null ? [] : [{ orgId, reference: clientSecretRef }],
    );
    const secrets = await this.#deps.vault.openForEnd(tx, wanted);
    return ({ instanceId: _instanceId, clientSecretRef, ...client }) => {
      if (clientSecretRef === null) return { ...client, clientSecret: null };
      const value = secrets.get(referenceKey({ orgId: client.orgId, reference: clientSecretRef }));
      const clientSecret = value ? clientSecretIn(value) : null;
      return clientSecret === null ? null : { ...client, clientSecret };
    };
  }

  /** A provider that refuses has said all that it will. @throws ProviderRefusal to be tried again */
  async #run({ id, sealed }: SealedRevocation): Promise<void> {
    const { provider, seal } = this.#deps;
    const { client, accessToken, refreshToken } = JSON.parse(
      seal.open(Buffer.from(sealed, 'base64'), id),
    ) as Revocation;
    const revoke = async (token: string, kind: 'access_token' | 'refresh_token') => {
      try {
        await provider.revoke(client, token, kind);
      } catch (error) {
        const isFinal = error instanceof ProviderRefusal && /^(refused|invalid_grant)$/.test(error.kind);
        if (!isFinal) throw error;
      }
    };
    if (refreshToken) await revoke(refreshToken, 'refresh_token');
    await revoke(accessToken, 'access_token');
  }
}
