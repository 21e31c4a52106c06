import { randomToken, tokenHash } from '../../access/random-token.ts';
import { findRow, type QueryRunner } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import type { OAuthState } from '../../generated/prisma/client.ts';
import { invalidInput } from '../../kernel/errors.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import { PENDING_SECONDS } from './connection-state.ts';

/** What the states of end users begin with: those of both come back to one address. */
export const END_USER_STATE = 'eu_';
/** What marks the states of the client by the own document. */
const OWN_CLIENT_STATE = 'own_';

/** Whether a state was begun with the client by the own document: its code comes back to an address of its own. */
export const isOfOwnClient = (state: string): boolean =>
  state.startsWith(OWN_CLIENT_STATE) || state.startsWith(`${END_USER_STATE}${OWN_CLIENT_STATE}`);

/** A new state of 256 bits, which looks like that of nobody else. */
export function newState({ isOwnClient, isOfEndUser }: { isOwnClient: boolean; isOfEndUser: boolean }): string {
  const random = randomToken();
  if (random.startsWith(END_USER_STATE) || random.startsWith(OWN_CLIENT_STATE))
    return newState({ isOwnClient, isOfEndUser });
  return `${isOfEndUser ? END_USER_STATE : ''}${isOwnClient ? OWN_CLIENT_STATE : ''}${random}`;
}

/** What a state stands for. */
type BegunAuthorization = Pick<
  OAuthState,
  'orgId' | 'workspaceId' | 'namespaceId' | 'toolInstanceId' | 'connectionId' | 'userId' | 'redirectUri' | 'scopes'
>;

/**
 * Started authorizations at providers. Each may be finished once, within ten minutes, by the user who started it. The
 * database has the hash of the state and the PKCE verifier sealed, so whoever reads it can finish none.
 */
export class OAuthStates implements Owner {
  readonly retention = [`delete from oauth_states where expires_at < now() - interval '1 day'`];
  readonly #seal: Seal;

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  /** Stores what a state stands for. */
  begin(tx: Tx, state: string, verifier: string, begun: BegunAuthorization): void {
    const hash = tokenHash(state);
    tx.insert('oauth_states', {
      hash,
      ...begun,
      verifier: this.#seal.seal(verifier, hash),
      expiresAt: new Date(Date.now() + PENDING_SECONDS * 1_000),
    });
  }

  /**
   * What a state of this user stands for, which is not used up by this. @throws InputError at `state`, the same for a
   * state that is unknown, used, expired or somebody else's
   */
  async find(db: QueryRunner, state: string, userId: string): Promise<OAuthState> {
    const found = await findRow(db, 'oauth_states', { hash: tokenHash(state) });
    if (!found || found.userId !== userId || !isOpen(found)) throw invalidState();
    return found;
  }

  /** Uses up a state that was found. Of several at once, one does. @throws InputError as `find` */
  async consume(tx: Tx, { hash }: OAuthState): Promise<void> {
    const found = await tx.lock('oauth_states', { hash }, 'no key update', invalidState);
    if (!isOpen(found)) throw invalidState();
    tx.update('oauth_states', { hash }, { usedAt: new Date() });
  }

  /** The PKCE verifier. */
  verifierOf({ hash, verifier }: OAuthState): string {
    return this.#seal.open(verifier, hash);
  }
}

const isOpen = ({ usedAt, expiresAt }: OAuthState): boolean => usedAt === null && expiresAt.getTime() > Date.now();

const invalidState = () =>
  invalidInput(['state'], 'the state is unknown, was used, has expired or belongs to another user: start again');
