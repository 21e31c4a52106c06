import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { Changes } from '../../data/changes.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { SsoState } from '../../generated/prisma/client.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import { SsoRefusal } from './sso-refusal.ts';

/** A sign-in ends ten minutes after it has begun (defaults §1). */
const LIFETIME_MS = 600_000;

/** What a sign-in is begun with. */
export interface BegunSignIn {
  orgId: string;
  identityProviderId: string;
  kind: 'sign_in' | 'test';
  testId: string | null;
  /** Of OpenID Connect. */
  nonce: string | null;
  verifier: string | null;
  /** Of SAML. */
  requestId: string | null;
  /** What the cookie of the browser holds; `null`: whoever brings the answer gets the result. */
  browser: string | null;
  redirectUri: string | null;
}

/** A sign-in that was begun, and is now to be finished. */
export type OpenState = Omit<SsoState, 'verifier'> & { verifier: string | null };

/**
 * Sign-ins between their beginning and their callback. Each has one try, within ten minutes, in the browser that began
 * it. The database has the hash of the state and the PKCE verifier sealed, so whoever reads it can finish none.
 */
export class SsoStates {
  readonly #changes: Changes;
  readonly #seal: Seal;

  constructor(deps: { changes: Changes; seal: Seal }) {
    this.#changes = deps.changes;
    this.#seal = deps.seal;
  }

  /** A new state of 256 bits. */
  newState(): string {
    return randomToken();
  }

  /** Stores what a state stands for. */
  begin(tx: Tx, state: string, { browser, verifier, ...begun }: BegunSignIn): void {
    const hash = tokenHash(state);
    tx.insert('sso_states', {
      hash,
      ...begun,
      verifier: verifier === null ? null : this.#seal.seal(verifier, hash),
      browserHash: browser === null ? null : tokenHash(browser),
      expiresAt: new Date(Date.now() + LIFETIME_MS),
    });
  }

  /**
   * Uses up a state, and returns what it stood for: of several tries, one gets it, whatever becomes of that. Another
   * browser uses up nothing.
   * @throws SsoRefusal
   */
  async take(caller: AnyCaller, state: string, browser: string | null): Promise<OpenState> {
    const hash = tokenHash(state);
    const browserHash = browser === null ? null : tokenHash(browser);
    const [found] = await this.#changes.run(caller, (tx) =>
      tx.query<SsoState>(statement`
        update sso_states set used_at = now()
        where hash = ${hash} and used_at is null and expires_at > now()
          and (browser_hash is null or browser_hash = ${browserHash})
        returning hash, org_id as "orgId", identity_provider_id as "identityProviderId", kind, test_id as "testId",
          nonce, verifier, request_id as "requestId", browser_hash as "browserHash", redirect_uri as "redirectUri",
          created_at as "createdAt", expires_at as "expiresAt", used_at as "usedAt"`),
    );
    if (!found) throw new SsoRefusal('the state is unknown, was used, has expired or belongs to another browser');
    return { ...found, verifier: found.verifier === null ? null : this.#seal.open(found.verifier, hash) };
  }
}
