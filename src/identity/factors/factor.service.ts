import { demandLiveSession } from '../../access/live-session.ts';
import type { QueryRunner } from '../../data/find-row.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import { conflict, invalidInput, notFound, unauthenticated } from '../../kernel/errors.ts';
import { sessionOf, type UserPrincipal } from '../../kernel/principal.ts';
import type { AuthDeps } from '../auth/auth.service.ts';
import { CHALLENGE_SECONDS, type Challenges } from './challenges.ts';
import { changeFactors, type FactorChange } from './factor-changes.ts';
import type { FactorMethod, FactorProofs, GivenProof } from './factor-proofs.ts';
import type { PasskeyBeginning } from './factor-sign-in.ts';
import { demandFreshFactor } from './fresh-factor.ts';
import type { PasskeyCeremonies } from './passkey-ceremonies.ts';
import { renewRecoveryCodes } from './recovery-codes.ts';
import type { Totp, TotpEnrolment } from './totp.ts';

export interface FactorDeps
  extends Pick<AuthDeps, 'sql' | 'changes' | 'access' | 'authentication' | 'currentPassword' | 'factorEnds'> {
  totp: Totp;
  proofs: FactorProofs;
  challenges: Challenges;
  ceremonies: PasskeyCeremonies;
}

/** An app for one-time codes, as its user sees it. */
interface TotpView {
  createdAt: Date;
  lastUsedAt: Date | null;
}

/** What somebody can prove besides their password. */
export interface FactorsView {
  totp: TotpView | null;
  recoveryCodesLeft: number;
  /** When a factor was last proven in this session. */
  provenAt: Date | null;
}

const VIEW = `select t.created_at as "createdAt", t.last_used_at as "lastUsedAt", s.factor_at as "provenAt",
    (select count(*)::int from recovery_codes where user_id = $1) as "recoveryCodesLeft"
  from (values (1)) one left join totp_factors t on t.user_id = $1 and t.confirmed_at is not null
  left join sessions s on s.id = $2`;

/** The second factors of the caller: an app for one-time codes, and recovery codes (docs/decisions/0064). */
export class FactorService {
  readonly #deps: FactorDeps;

  constructor(deps: FactorDeps) {
    this.#deps = deps;
  }

  async view(caller: Caller): Promise<FactorsView> {
    const { userId, sessionId } = sessionOf(caller, 'user:read');
    type Row = Omit<FactorsView, 'totp'> & { createdAt: Date | null; lastUsedAt: Date | null };
    const [row] = await this.#deps.sql.read<Row>(VIEW, [userId, sessionId]);
    const { createdAt, lastUsedAt, recoveryCodesLeft, provenAt } = row!;
    return { totp: createdAt && { createdAt, lastUsedAt }, recoveryCodesLeft, provenAt };
  }

  /** What the caller can prove. */
  methods(caller: Caller): Promise<FactorMethod[]> {
    return this.#deps.proofs.methodsOf(this.#deps.sql, caller.principal.userId);
  }

  /**
   * Begins to add an app for one-time codes. It proves nothing before {@link confirmTotp}.
   * @throws as `demandMayAdd`, RESOURCE_CONFLICT `factor_exists`
   */
  async enrolTotp(caller: Caller, currentPassword: string | null | undefined): Promise<TotpEnrolment> {
    const { changes, totp } = this.#deps;
    const principal = await demandMayAdd(this.#deps, caller, currentPassword);
    const { userId } = principal;
    return changes.run(caller, async (tx) => {
      await lockUser(tx, this.#deps, caller, principal);
      const confirmed = await tx.query(
        statement`select from totp_factors where user_id = ${userId} and confirmed_at is not null`,
      );
      if (confirmed.length > 0)
        throw conflict('user', userId, 'factor_exists', 'You have an app for one-time codes. Remove it first.');
      tx.audit(auditOf(principal, 'totp_begun'));
      return totp.enrol(tx, userId, principal.username);
    });
  }

  /**
   * Adds the app that was begun, by one of its codes: the caller's password is not enough from then on.
   * @returns recovery codes, if they are the first ones
   * @throws InputError for a wrong code, RATE_LIMIT_EXCEEDED, FORBIDDEN `fresh_factor`
   */
  async confirmTotp(caller: Caller, code: string): Promise<string[]> {
    const { sql, changes, totp, proofs } = this.#deps;
    const principal = sessionOf(caller, 'user:update');
    // there may be a factor since it was begun
    await demandFreshFactor(sql, caller);
    await proofs.takeTry(principal.userId);
    const codes = await changes.run(caller, async (tx) => {
      await lockUser(tx, this.#deps, caller, principal);
      if (!(await totp.use(tx, principal.userId, code, 'new'))) throw wrongCode();
      return addFactor(tx, principal, 'totp_added');
    });
    await proofs.succeeded(principal.userId);
    return codes;
  }

  /** Removes the app. @throws FORBIDDEN `fresh_factor`, RESOURCE_NOT_FOUND */
  async removeTotp(caller: Caller): Promise<void> {
    const { sql, changes, factorEnds } = this.#deps;
    const principal = sessionOf(caller, 'user:update');
    const { userId } = principal;
    await demandFreshFactor(sql, caller);
    await changes.run(caller, async (tx) => {
      await lockUser(tx, this.#deps, caller, principal);
      const confirmed = await tx.query(
        statement`select from totp_factors where user_id = ${userId} and confirmed_at is not null`,
      );
      if (confirmed.length === 0) throw notFound('user_credential', 'totp');
      factorEnds.removeTotp(tx, userId);
      factorRemoved(tx, principal, 'totp_removed');
    });
  }

  /**
   * New recovery codes in place of the earlier ones.
   * @throws FORBIDDEN `fresh_factor`, RESOURCE_CONFLICT `no_factor`
   */
  async renewRecoveryCodes(caller: Caller): Promise<string[]> {
    const { sql, changes, proofs } = this.#deps;
    const principal = sessionOf(caller, 'user:update');
    const { userId } = principal;
    await demandFreshFactor(sql, caller);
    return changes.run(caller, async (tx) => {
      await lockUser(tx, this.#deps, caller, principal);
      if ((await proofs.methodsOf(tx, userId)).length === 0)
        throw conflict('user', userId, 'no_factor', 'Recovery codes take the place of a second factor. Add one first.');
      changeFactors(tx, principal, 'recovery_codes');
      return renewRecoveryCodes(tx, userId);
    });
  }

  /** Begins to prove a factor once more, with a passkey. */
  async beginProof(caller: Caller): Promise<PasskeyBeginning> {
    const { sql, proofs, challenges, ceremonies } = this.#deps;
    const { userId, sessionId } = sessionOf(caller, 'user:update');
    const { token, nonce } = challenges.issue('proof', { userId, bond: sessionId });
    const passkeys = await proofs.passkeysOf(sql, userId);
    if (passkeys.length === 0) throw conflict('user', userId, 'no_factor', 'You have no passkey.');
    return { challenge: token, options: await ceremonies.request(nonce, passkeys), expiresIn: CHALLENGE_SECONDS };
  }

  /**
   * Proves a factor once more in the session of the caller: with a code, or with a passkey that was asked by
   * {@link beginProof}.
   * @throws InputError when it is wrong: the caller is signed in, and a 401 would make clients refresh and guess again;
   * RATE_LIMIT_EXCEEDED after ten wrong codes
   */
  async prove(caller: Caller, given: GivenProof & { challenge?: string | null | undefined }): Promise<Date> {
    const { changes, proofs, challenges } = this.#deps;
    const principal = sessionOf(caller, 'user:update');
    const { userId, sessionId } = principal;
    const challenge = given.credential ? challenges.read('proof', given.challenge ?? '') : null;
    const isOwn = challenge?.userId === userId && challenge.bond === sessionId;
    if (given.credential && !isOwn) throw invalidInput(['input', 'challenge'], 'it is over, or of another session');
    if (!given.credential) await proofs.takeTry(userId);
    const provenAt = new Date();
    await changes.run(caller, async (tx) => {
      await lockUser(tx, this.#deps, caller, principal);
      const proven = await proofs.prove(tx, userId, given, challenge?.nonce ?? '');
      if (!proven || (challenge && !(await challenges.use(tx, challenge)))) throw wrongCode(given.credential);
      tx.update('sessions', { id: sessionId }, { factorAt: provenAt });
      tx.audit(auditOf(principal, 'proven', { method: proven.method }));
    });
    if (!given.credential) await proofs.succeeded(userId);
    return provenAt;
  }
}

const wrongCode = (credential?: GivenProof['credential']) =>
  credential
    ? invalidInput(['input', 'credential'], 'it does not prove a passkey of yours')
    : invalidInput(['input', 'code'], 'this code is wrong, or was used before');

/**
 * Who may add a factor: with one, whoever has just proven it; without one, whoever has the password, or has just signed
 * in to an account without a password. Whoever has a stolen session would keep its owner out.
 */
export async function demandMayAdd(
  { sql, proofs, currentPassword }: Pick<FactorDeps, 'sql' | 'proofs' | 'currentPassword'>,
  caller: Caller,
  password: string | null | undefined,
): Promise<UserPrincipal> {
  const principal = sessionOf(caller, 'user:update');
  if ((await proofs.methodsOf(sql, principal.userId)).length > 0) {
    await demandFreshFactor(sql, caller);
    return principal;
  }
  const path = ['input', 'currentPassword'];
  if (!password && (await hasPassword(sql, principal.userId)))
    throw invalidInput(path, 'adding a second factor requires your password');
  await currentPassword.demand(caller, password, path, 'adding a second factor');
  return principal;
}

async function hasPassword(db: QueryRunner, userId: string): Promise<boolean> {
  const found = await db.query(statement`select from users where id = ${userId} and password_hash is not null`);
  return found.length > 0;
}

/**
 * Locks the caller's account, for a change of its factors by a session that still lives. What checks know of both is
 * read again after it: organizations that demand a factor are open or closed at once.
 */
export async function lockUser(
  tx: Tx,
  { access, authentication }: Pick<FactorDeps, 'access' | 'authentication'>,
  caller: Caller,
  { userId, sessionId }: UserPrincipal,
): Promise<void> {
  tx.afterCommit(() => {
    access.facts.factorsChanged(userId);
    authentication.sessionChanged(sessionId);
  });
  await tx.lock('users', { id: userId, isActive: true }, 'no key update', unauthenticated);
  await demandLiveSession(tx, caller);
}

const auditOf = ({ userId, orgId }: UserPrincipal, factor: string, more: Record<string, unknown> = {}) =>
  ({
    action: 'update',
    resourceType: 'user',
    resourceId: userId,
    orgId,
    metadata: { factor, ...more },
  }) as const;

/**
 * A factor was added, and proven by that. Another address that was asked for before, without a factor, is not taken any
 * more.
 * @returns recovery codes, unless there are some already
 */
export async function addFactor(tx: Tx, principal: UserPrincipal, change: FactorChange): Promise<string[]> {
  const { userId, sessionId } = principal;
  const had = await tx.query(statement`select from recovery_codes where user_id = ${userId} limit 1`);
  tx.update('sessions', { id: sessionId }, { factorAt: new Date() });
  tx.remove('email_tokens', { userId, purpose: 'change_email', usedAt: null });
  changeFactors(tx, principal, change);
  return had.length > 0 ? [] : renewRecoveryCodes(tx, userId);
}

/** A factor was removed; recovery codes end with the last one. */
export function factorRemoved(tx: Tx, principal: UserPrincipal, change: FactorChange, removedId?: string): void {
  const { userId } = principal;
  tx.write(statement`delete from recovery_codes where user_id = ${userId}
    and not exists (select from passkeys where user_id = ${userId})
    and not exists (select from totp_factors where user_id = ${userId} and confirmed_at is not null)`);
  changeFactors(tx, principal, change, removedId);
}
