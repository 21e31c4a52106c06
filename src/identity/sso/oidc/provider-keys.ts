import {
  type CompactJWSHeaderParameters,
  compactVerify,
  createLocalJWKSet,
  errors,
  type FlattenedJWSInput,
  type JWSHeaderParameters,
} from 'jose';
import { SsoRefusal } from '../sso-refusal.ts';

/** With a key pair: the provider alone can sign. Neither `none` nor a secret that both know. */
export const SIGNING_ALGORITHMS: readonly string[] = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/** RFC 8725, 3.11: tokens for other uses say so, such as `at+jwt` for access and `logout+jwt`. */
const OTHER_KIND = /\+jwt$/i;
const LOGOUT_KIND = /^(?:(?:application\/)?logout\+jwt|jwt|)$/i;

const FRESH_MS = 600_000;
/** Between two looks for a key that nobody knew. */
const PAUSE_MS = 30_000;

type KeySet = ReturnType<typeof createLocalJWKSet>;

/**
 * The signing keys of one provider. They are read again after ten minutes. A key that is not among them may be new, so
 * it makes the service look once more, but not again within 30 seconds: tokens with made-up keys cause no flood.
 */
export class ProviderKeys {
  readonly #load: () => Promise<unknown>;
  readonly #now: () => number;
  #keys: { set: KeySet; at: number } | null = null;
  #loading: Promise<KeySet> | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** @param load reads the JSON Web Key Set of the provider */
  constructor(load: () => Promise<unknown>, now: () => number = Date.now) {
    this.#load = load;
    this.#now = now;
  }

  /** @returns the algorithm of an ID token whose signature is right @throws SsoRefusal; what `load` throws */
  async verify(token: string): Promise<string> {
    const { typ = '', alg } = await this.#verified(token);
    if (OTHER_KIND.test(typ)) throw new SsoRefusal('the token is not an ID token');
    return alg;
  }

  /**
   * Demands that the signature of a logout token is right. Providers that are older than its type leave that out.
   * @throws SsoRefusal; what `load` throws
   */
  async verifyLogout(token: string): Promise<void> {
    const { typ = '' } = await this.#verified(token);
    if (!LOGOUT_KIND.test(typ)) throw new SsoRefusal('the token is not a logout token');
  }

  async #verified(token: string): Promise<CompactJWSHeaderParameters> {
    try {
      const { protectedHeader } = await compactVerify(token, (header, input) => this.#keyFor(header, input), {
        algorithms: [...SIGNING_ALGORITHMS],
      });
      return protectedHeader;
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      throw new SsoRefusal(REASONS[error.code] ?? 'the ID token is not a signed JWT');
    }
  }

  async #keyFor(header: JWSHeaderParameters, input: FlattenedJWSInput) {
    const fresh = this.#keys && this.#now() - this.#keys.at < FRESH_MS ? this.#keys.set : null;
    const set = fresh ?? (await this.#read());
    try {
      return await set(header, input);
    } catch (error) {
      const isUnknown = error instanceof errors.JWKSNoMatchingKey;
      if (!isUnknown || !fresh || this.#now() - this.#lookedAt < PAUSE_MS) throw error;
      this.#lookedAt = this.#now();
      return (await this.#read())(header, input);
    }
  }

  #read(): Promise<KeySet> {
    this.#loading ??= this.#readOnce().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #readOnce(): Promise<KeySet> {
    const set = createLocalJWKSet((await this.#load()) as Parameters<typeof createLocalJWKSet>[0]);
    this.#keys = { set, at: this.#now() };
    return set;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ERR_JOSE_ALG_NOT_ALLOWED: 'the ID token is signed with an algorithm that is not accepted',
  ERR_JOSE_NOT_SUPPORTED: 'the ID token is signed with an algorithm that is not accepted',
  ERR_JWKS_NO_MATCHING_KEY: 'the ID token is signed with a key that the provider does not publish',
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'the ID token has no key id, and the provider publishes several keys',
  ERR_JWKS_INVALID: 'the provider publishes no key set',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'the signature of the ID token is wrong',
};
