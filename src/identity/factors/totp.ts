import { Secret, TOTP } from 'otpauth';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { UserCredentials } from '../../vault/secrets/user-credentials.ts';

/** What every authenticator app understands (RFC 6238). */
const SETTINGS = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
const SECRET_BYTES = 20;
/** A clock may be off by half a minute. */
const WINDOW = 1;

/** For this long an app that was begun can be confirmed. */
const BEGUN_MINUTES = 15;

export const TOTP_CODE = /^\d{6}$/;

/** What an app is given, shown once. */
export interface TotpEnrolment {
  secret: string;
  uri: string;
}

/** One-time codes of an app (RFC 6238). What they are made of is sealed; none is accepted twice, on all nodes. */
export class Totp {
  readonly #credentials: UserCredentials;
  readonly #issuer: () => string;

  /** @param deps.issuer what apps show beside the codes */
  constructor(deps: { credentials: UserCredentials; issuer: () => string }) {
    this.#credentials = deps.credentials;
    this.#issuer = deps.issuer;
  }

  /** Begins anew: what another beginning has shown is no good any more. The caller has locked the user's row. */
  async enrol(tx: Tx, userId: string, label: string): Promise<TotpEnrolment> {
    const secret = new Secret({ size: SECRET_BYTES });
    await this.#credentials.put(tx, userId, { totp: secret.base32 });
    tx.write(statement`insert into totp_factors (user_id) values (${userId}) on conflict (user_id) do update
      set created_at = now(), confirmed_at = null, last_step = null, last_used_at = null, is_doubtful = false`);
    return { secret: secret.base32, uri: new TOTP({ ...SETTINGS, issuer: this.#issuer(), label, secret }).toString() };
  }

  /**
   * Uses a code up: it and all before it are no good any more. The caller has locked the user's row.
   * @param stage whether it proves a factor, or confirms a new one
   * @returns whether it was right
   */
  async use(tx: Tx, userId: string, code: string, stage: 'confirmed' | 'new' = 'confirmed'): Promise<boolean> {
    const stored = await this.#credentials.open(tx, userId);
    if (typeof stored?.totp !== 'string') return false;
    const totp = new TOTP({ ...SETTINGS, secret: Secret.fromBase32(stored.totp) });
    const timestamp = Date.now();
    const delta = totp.validate({ token: code, timestamp, window: WINDOW });
    if (delta === null) return false;
    const step = totp.counter({ timestamp }) + delta;
    const used = await tx.query(statement`
      update totp_factors set last_step = ${step}, last_used_at = now(), confirmed_at = coalesce(confirmed_at, now())
      where user_id = ${userId} and coalesce(last_step < ${step}, true)
        and (confirmed_at is null) = ${stage === 'new'}::boolean
        and (confirmed_at is not null or created_at > now() - make_interval(mins => ${BEGUN_MINUTES}))
      returning user_id`);
    return used.length > 0;
  }
}
