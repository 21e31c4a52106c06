import type { Access } from '../../access/access.ts';
import type { AccessTokens } from '../../access/access-tokens.ts';
import type { Authentication } from '../../access/authentication.ts';
import type { Budgets } from '../../access/budgets.ts';
import { demandsFactor, hasFactor } from '../../access/factor-demand.ts';
import type { MailBudgets } from '../../access/mail-budgets.ts';
import type { Passwords } from '../../access/passwords.ts';
import { tokenHash } from '../../access/random-token.ts';
import { demandsSso } from '../../access/sso-demand.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Config } from '../../config.ts';
import { type ActivityEntry, type ActivityOutcome, type ActivityRecorder, outcomeOf } from '../../data/activity.ts';
import type { Changes } from '../../data/changes.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { PrismaClient, User } from '../../generated/prisma/client.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { ApiError, forbidden, wrongPassword } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import type { AccountMail } from '../../platform/mail/account-mail.ts';
import type { FactorEnds } from '../factors/factor-ends.ts';
import { FactorRequired } from '../factors/factor-refusals.ts';
import { CountedAttempts } from './counted-attempts.ts';
import type { CurrentPassword } from './current-password.ts';
import { Lockout, lockedOut, lockoutRetention } from './lockout.ts';
import type { SessionFacts, SessionOrigin, Sessions, TokenPair } from './sessions.ts';

export interface AuthDeps {
  config: Config;
  prisma: PrismaClient;
  sql: Sql;
  changes: Changes;
  access: Access;
  authentication: Authentication;
  tokens: AccessTokens;
  passwords: Passwords;
  currentPassword: CurrentPassword;
  sessions: Sessions;
  mail: AccountMail;
  mailBudgets: MailBudgets;
  budgets: Budgets;
  activity: ActivityRecorder;
  factorEnds: FactorEnds;
  /** Refuses a sign-in by a password alone where the account has a factor: `SecondFactor` in `../factors`. */
  demandFactors: SignInCheck;
}

/** What else a password needs; it throws what is missing. */
export type SignInCheck = (tx: Tx, user: User) => Promise<void>;

/** What is known of a session that is about to be opened, and what its record says. */
interface Opening {
  origin?: Partial<SessionOrigin>;
  metadata?: Record<string, unknown>;
}

/** A token pair and its user. */
export interface SignIn extends TokenPair {
  userId: string;
  orgId: string | null;
}

/** Sign-in, refresh, logout and the choice of an organization (spec, Auth). */
export class AuthService {
  readonly retention = lockoutRetention;
  readonly #deps: AuthDeps;
  readonly #lockout: Lockout;
  readonly #failuresByAddress: Budget;
  readonly #countedAttempts = new CountedAttempts();

  constructor(deps: AuthDeps) {
    this.#deps = deps;
    this.#lockout = new Lockout(deps.prisma);
    this.#failuresByAddress = deps.budgets.of('sign_in_failures', deps.config.loginFailuresPerMinute, 60);
  }

  /**
   * Signs in with a user name or e-mail address. Unknown names, wrong passwords and inactive accounts get the same
   * answer after the same work.
   */
  async login(caller: AnyCaller, { username, password }: { username: string; password: string }): Promise<SignIn> {
    const { prisma } = this.#deps;
    const { ip } = caller.request;
    await this.#failuresByAddress.check(ip);
    const [holder = null, ...others] = await findByName(prisma, username.toLowerCase());
    const lockKey = holder?.id ?? `name:${tokenHash(username.toLowerCase())}`;
    await this.#demandUnlocked(caller, lockKey, holder);
    const user = await this.#whoseIs(password, [holder, ...others]);
    if (!user) throw await this.#refusal(caller, lockKey, holder);
    // among many simultaneous guesses, the right one must reveal no more than the wrong ones that locked the account
    await this.#failuresByAddress.check(ip);
    await this.#demandUnlocked(caller, lockKey, holder);
    if (user.id !== lockKey) await this.#demandUnlocked(caller, user.id, user);
    await this.#lockout.succeeded(user.id);
    const fresh = await this.#withFreshHash(user, password);
    try {
      return await this.finishSignIn(caller, fresh, async (tx) => {
        await this.#deps.demandFactors(tx, fresh);
        return {};
      });
    } catch (error) {
      // somebody has the password: its user should know, also when it was not enough
      if (error instanceof FactorRequired)
        this.#recordFailure(caller, user, outcomeOf(error), { reason: 'factor_required' });
      throw error;
    }
  }

  /** @throws RATE_LIMIT_EXCEEDED for an address with too many failed sign-ins */
  async demandTries({ request }: AnyCaller): Promise<void> {
    await this.#failuresByAddress.check(request.ip);
  }

  /** Counts and records a sign-in that failed after the password, or without one. @returns the error to answer with */
  async refused(
    caller: AnyCaller,
    { user, error, failed }: { user: User | null; error: ApiError; failed: string },
  ): Promise<ApiError> {
    const wait = await this.#failuresByAddress.take(caller.request.ip);
    const answer = wait > 0 ? lockedOut(wait) : error;
    this.#recordFailure(caller, user, outcomeOf(answer), { failed });
    return answer;
  }

  /** The first account whose password it is; a missing account costs the same work. */
  async #whoseIs(password: string, accounts: readonly (User | null)[]): Promise<User | null> {
    for (const account of accounts) {
      const hash = account?.isActive && !account.deactivatedAt ? account.passwordHash : null;
      if (await this.#deps.passwords.verify(hash, password)) return account;
    }
    return null;
  }

  /** Records the failures that are only counted so far. A clean stop does so before it writes the last records. */
  recordFailures(): void {
    this.#countedAttempts.flush();
  }

  /** Ends the caller's session. The access token stops working at once. @returns the session */
  async logout(caller: Caller): Promise<string> {
    const { sessionId, userId, orgId } = sessionOf(caller, 'user:update');
    await this.#deps.changes.run(caller, async (tx) => {
      this.#deps.sessions.revoke(tx, sessionId, 'logout');
      tx.audit({ action: 'logout', resourceType: 'user', resourceId: userId, orgId });
      tx.afterCommit(() => this.#deps.authentication.sessionChanged(sessionId));
    });
    return sessionId;
  }

  /** @throws AUTHENTICATION_FAILED for any fault of the token */
  async refresh(caller: AnyCaller, refreshToken: string): Promise<TokenPair> {
    const { activity, sessions } = this.#deps;
    const entry = ({ userId, orgId }: SessionFacts): ActivityEntry => ({
      action: 'refresh',
      resourceType: 'user',
      resourceId: userId,
      orgId,
    });
    const { userId, orgId, sessionId, ...pair } = await sessions.refresh(refreshToken, (stolen) =>
      activity.record(
        asStranger(caller),
        { ...entry(stolen), metadata: { session_ended: 'refresh_token_reuse' } },
        { statusCode: 401, errorCode: 'AUTHENTICATION_FAILED' },
      ),
    );
    activity.record(asStranger(caller), { ...entry({ userId, orgId, sessionId }), userId }, { statusCode: 200 });
    return pair;
  }

  /**
   * Switches the session to another of the caller's organizations.
   * @throws FORBIDDEN `organization:access`
   */
  async switchOrganization(
    caller: Caller,
    orgId: string,
  ): Promise<{ accessToken: string; tokenType: 'bearer'; expiresIn: number; orgId: string }> {
    const { access, changes, tokens } = this.#deps;
    await access.requireOrganization(caller, orgId, 'organization:access');
    const { sessionId, userId } = sessionOf(caller, 'organization:access');
    await changes.run(caller, async (tx) => {
      tx.update('sessions', { id: sessionId }, { orgId });
      tx.audit({
        action: 'update',
        resourceType: 'organization',
        resourceId: orgId,
        orgId,
        metadata: { switched: true },
      });
    });
    return {
      accessToken: await tokens.issue({ userId, orgId, sessionId }),
      tokenType: 'bearer',
      expiresIn: tokens.ttlSeconds,
      orgId,
    };
  }

  /**
   * Counts and records a failed sign-in.
   * @returns the error to answer with
   */
  async #refusal(caller: AnyCaller, lockKey: string, user: User | null): Promise<ApiError> {
    const wait = Math.max(await this.#failuresByAddress.take(caller.request.ip), await this.#lockout.failed(lockKey));
    const [error, statusCode] = wait > 0 ? [lockedOut(wait), 429] : [wrongCredentials(), 401];
    this.#recordFailure(caller, user, { statusCode, errorCode: error.code });
    return error;
  }

  /** @throws RATE_LIMIT_EXCEEDED while the account is locked */
  async #demandUnlocked(caller: AnyCaller, lockKey: string, user: User | null): Promise<void> {
    try {
      await this.#lockout.check(lockKey);
    } catch (error) {
      if (user && error instanceof ApiError) {
        const took = performance.now() - caller.request.startedAt;
        this.#countedAttempts.note(user.id, (attempts) => {
          // the record may be written a minute later
          const request = { ...caller.request, startedAt: performance.now() - took };
          this.#recordFailure({ ...caller, request }, user, outcomeOf(error), { attempts });
        });
      }
      throw error;
    }
  }

  /** @throws FORBIDDEN `account:verified` */
  #demandVerified(caller: AnyCaller, user: User): void {
    if (!this.#deps.config.requireVerifiedEmail || user.isVerified) return;
    this.#recordFailure(caller, user, { statusCode: 403, errorCode: 'FORBIDDEN' });
    throw forbidden('account:verified', 'Confirm your e-mail address before you sign in.');
  }

  /** The record has nothing that was typed: people type passwords into the wrong field. */
  #recordFailure(caller: AnyCaller, user: User | null, outcome: ActivityOutcome, metadata = {}): void {
    this.#deps.activity.record(
      asStranger(caller),
      {
        action: 'login',
        resourceType: 'user',
        resourceId: user?.id ?? null,
        orgId: null,
        accountId: user?.id ?? null,
        metadata,
      },
      outcome,
    );
  }

  /** The user, with a hash made with today's parameters. */
  async #withFreshHash(user: User, password: string): Promise<User> {
    const { prisma, passwords } = this.#deps;
    if (!user.passwordHash || !passwords.isOutdated(user.passwordHash)) return user;
    const passwordHash = await passwords.hash(password);
    // not if the password was changed meanwhile
    await prisma.user.updateMany({ where: { id: user.id, passwordHash: user.passwordHash }, data: { passwordHash } });
    return { ...user, passwordHash };
  }

  /**
   * Opens the session of somebody who has proven who they are.
   * @param check what else must hold once the account is locked, and what is known of the session
   * @throws AUTHENTICATION_FAILED when the password was reset or the account deactivated since the password was
   * verified, FORBIDDEN `account:verified`, what `check` throws
   */
  async finishSignIn(caller: AnyCaller, user: User, check: (tx: Tx) => Promise<Opening>): Promise<SignIn> {
    const { changes, sql, sessions } = this.#deps;
    const { id, passwordHash } = user;
    const orgId = await homeOf(sql, user);
    const signedIn: AnyCaller = { ...asStranger(caller), signedInAs: { userId: user.id, username: user.username } };
    const signIn = await changes.run(signedIn, async (tx) => {
      // locks the account: a concurrent reset waits, and then ends the new session too
      tx.demand('users', { id, isActive: true, passwordHash }, 'no key update', wrongCredentials);
      const { origin, ...said } = await check(tx);
      this.#demandVerified(caller, user);
      tx.write(statement`update users set last_login = now() where id = ${id}`);
      const pair = await sessions.open(tx, { userId: id, orgId, address: caller.request.ip }, origin);
      tx.audit({ action: 'login', resourceType: 'user', resourceId: user.id, orgId, ...said });
      return { ...pair, userId: user.id, orgId };
    });
    caller.signedInAs = signedIn.signedInAs;
    return signIn;
  }
}

/** The same for every sign-in with a name and a password that is refused, so that it says nothing about the account. */
const wrongCredentials = () => wrongPassword('E-mail or password is wrong.');

/**
 * The caller without the principal of the request's token. They prove who they are in another way, so the records must
 * not name that principal.
 */
const asStranger = (caller: AnyCaller): AnyCaller => ({ ...caller, principal: null });

/**
 * By user name or e-mail address, in lower case. The owner of an address comes first, so nobody can block them by
 * taking the address as a user name; then an account that was registered with the address as its name.
 */
async function findByName(prisma: PrismaClient, name: string): Promise<User[]> {
  const users = await prisma.user.findMany({ where: { OR: [{ emailKey: name }, { usernameKey: name }] } });
  return users.sort((a, b) => Number(b.emailKey === name) - Number(a.emailKey === name));
}

const HOME = `select m.org_id as "orgId" from organization_members m join organizations o on o.id = m.org_id
  where m.user_id = $1 and o.deleted_at is null
  order by ${demandsSso('o', 'm.user_id')}, ${demandsFactor('o', 'm')} and not ${hasFactor('m.user_id')}, (m.org_id = (
    select w.org_id from workspaces w where w.id = $2 and w.deleted_at is null)) desc nulls last, m.id
  limit 1`;

/**
 * The organization of a new session: that of the default workspace, else that of the oldest membership. One that
 * demands single sign-on, or a factor that the user lacks, comes last: the password does not open it.
 */
async function homeOf(sql: Sql, user: Pick<User, 'id' | 'defaultWorkspaceId'>): Promise<string | null> {
  const [row] = await sql.read<{ orgId: string }>(HOME, [user.id, user.defaultWorkspaceId]);
  return row?.orgId ?? null;
}
