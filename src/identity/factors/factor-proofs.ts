import type { QueryRunner } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { PrismaClient } from '../../generated/prisma/client.ts';
import { Lockout, lockedOut } from '../auth/lockout.ts';
import {
  type CredentialJson,
  credentialIdOf,
  type KnownPasskey,
  type PasskeyCeremonies,
  userHandleOf,
} from './passkey-ceremonies.ts';
import { RECOVERY_CODE, useRecoveryCode } from './recovery-codes.ts';
import { TOTP_CODE, type Totp } from './totp.ts';

export const factorMethods = ['totp', 'passkey', 'recovery_code'] as const;
/** How somebody proves a second factor. */
export type FactorMethod = (typeof factorMethods)[number];

/** What somebody sends to prove a factor: a code, or the answer of an authenticator to a challenge. */
export interface GivenProof {
  code?: string | null | undefined;
  credential?: CredentialJson | null | undefined;
}

/** A factor that was proven. */
export interface ProvenFactor {
  method: FactorMethod;
  userId: string;
  isUserVerified: boolean;
}

/** A passkey, and whose it is. */
export interface StoredPasskey extends KnownPasskey {
  id: string;
  userId: string;
}

interface FactorProofDeps {
  prisma: PrismaClient;
  totp: Totp;
  ceremonies: PasskeyCeremonies;
}

/** Decides whether somebody has proven a second factor. No proof is accepted twice. */
export class FactorProofs {
  readonly #deps: FactorProofDeps;
  readonly #lockout: Lockout;

  constructor(deps: FactorProofDeps) {
    this.#deps = deps;
    this.#lockout = new Lockout(deps.prisma);
  }

  /** What a user can prove; nothing for an account without a second factor. */
  async methodsOf(db: QueryRunner, userId: string): Promise<FactorMethod[]> {
    const [has] = await db.query<Record<FactorMethod, boolean>>(statement`
      select exists (select from totp_factors where user_id = ${userId} and confirmed_at is not null) as totp,
        exists (select from passkeys where user_id = ${userId}) as passkey,
        exists (select from recovery_codes where user_id = ${userId}) as recovery_code`);
    if (!has?.totp && !has?.passkey) return [];
    return factorMethods.filter((method) => has[method]);
  }

  /** The passkeys of a user, for a browser to choose from. */
  async passkeysOf(db: QueryRunner, userId: string): Promise<Pick<KnownPasskey, 'credentialId' | 'transports'>[]> {
    return db.query(statement`
      select credential_id as "credentialId", transports from passkeys where user_id = ${userId} order by id`);
  }

  /**
   * Counts a code as wrong before it is looked at: of many at once, on however many nodes, no more than ten are. Apart
   * from passwords, because a right password begins the count of wrong passwords anew.
   * @throws RATE_LIMIT_EXCEEDED while locked
   */
  async takeTry(userId: string): Promise<void> {
    const wait = await this.#lockout.failed(lockKeyOf(userId));
    if (wait > 0) throw lockedOut(wait);
  }

  /** A right code begins the count anew. */
  async succeeded(userId: string): Promise<void> {
    await this.#lockout.succeeded(lockKeyOf(userId));
  }

  /**
   * Whether what a user has sent proves a factor of theirs, which it then uses up. The caller has locked the user's
   * row, and has counted the try of a code.
   * @param nonce what an authenticator was to sign
   * @returns `null` when it is wrong
   */
  async prove(tx: Tx, userId: string, { code, credential }: GivenProof, nonce: string): Promise<ProvenFactor | null> {
    if (credential) {
      const passkey = await this.passkeyBy(tx, credential);
      return passkey?.userId === userId ? this.provePasskey(tx, passkey, credential, nonce) : null;
    }
    const text = (code ?? '').replaceAll(/[\s-]/g, '').toLowerCase();
    if (TOTP_CODE.test(text)) return (await this.#deps.totp.use(tx, userId, text)) ? by('totp', userId) : null;
    if (!RECOVERY_CODE.test(text)) return null;
    return (await useRecoveryCode(tx, userId, text)) ? by('recovery_code', userId) : null;
  }

  /** The passkey that an authenticator's answer names. */
  async passkeyBy(db: QueryRunner, credential: CredentialJson): Promise<StoredPasskey | null> {
    const id = credentialIdOf(credential);
    if (id === null) return null;
    const [passkey] = await db.query<StoredPasskey>(statement`
      select id, user_id as "userId", credential_id as "credentialId", public_key as "publicKey",
        sign_count::float8 as "signCount", transports
      from passkeys where credential_id = ${id}`);
    return passkey ?? null;
  }

  /** The same for the answer of a passkey that was found. */
  async provePasskey(
    tx: Tx,
    passkey: StoredPasskey,
    credential: CredentialJson,
    nonce: string,
  ): Promise<ProvenFactor | null> {
    const { id, userId } = passkey;
    const handle = userHandleOf(credential);
    if (handle !== null && handle !== userId) return null;
    const proven = await this.#deps.ceremonies.proven(credential, nonce, passkey);
    if (!proven) return null;
    const { signCount, isUserVerified } = proven;
    // an authenticator that counts never counts down, also between two answers at once
    const used = await tx.query(statement`
      update passkeys set sign_count = ${signCount}, last_used_at = now()
      where id = ${id} and (sign_count < ${signCount} or (sign_count = 0 and ${signCount}::bigint = 0)) returning id`);
    return used.length > 0 ? { method: 'passkey', userId, isUserVerified } : null;
  }
}

const lockKeyOf = (userId: string): string => `factor:${userId}`;

const by = (method: FactorMethod, userId: string): ProvenFactor => ({ method, userId, isUserVerified: false });
