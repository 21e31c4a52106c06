import type { Access } from '../../access/access.ts';
import type { Authentication } from '../../access/authentication.ts';
import type { MailBudgets } from '../../access/mail-budgets.ts';
import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { Config } from '../../config.ts';
import type { ActivityRecorder } from '../../data/activity.ts';
import { type Changes, TryAgain } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import { whileTaken } from '../../data/while-taken.ts';
import { statement } from '../../data/writes.ts';
import type { IdentityProvider as ProviderRow } from '../../generated/prisma/client.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { type ApiError, forbidden, unauthenticated } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { asRole } from '../../kernel/roles.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import type { AccountMail } from '../../platform/mail/account-mail.ts';
import { joinOrganization, lockOrganization } from '../../tenancy/organizations/membership.ts';
import { ownersOf } from '../../tenancy/organizations/people-in-charge.ts';
import type { SignIn } from '../auth/auth.service.ts';
import { hasLiveEmailToken, issueEmailToken } from '../auth/email-tokens.ts';
import { holdAddress, settleAddress } from '../auth/held-addresses.ts';
import type { SessionOrigin, Sessions } from '../auth/sessions.ts';
import type { FactorEnds } from '../factors/factor-ends.ts';
import type { VerifiedIdentity } from '../sso/verified-identity.ts';
import { joinWorkspace } from './arrivals.ts';
import { removeEndedLinks } from './identity-links.ts';
import { freeUsername, newProfile, newsOf } from './profile.ts';
import { type RefusalReason, signInRefused } from './refusals.ts';
import { applyRoles, changeOf, feasible, type RoleChange } from './role-changes.ts';
import { planRoles, type RolePlan } from './role-plan.ts';
import { admissionOf, type SignInAdmission } from './sign-in-admission.ts';
import type { LinkReason } from './sign-in-admission.words.ts';
import { resumeTokens } from './token-suspension.ts';

interface FederatedSignInDeps {
  sql: Sql;
  changes: Changes;
  access: Access;
  authentication: Authentication;
  sessions: Sessions;
  mail: AccountMail;
  mailBudgets: MailBudgets;
  activity: ActivityRecorder;
  factorEnds: FactorEnds;
  config: Pick<Config, 'requireVerifiedEmail'>;
  /** Seals the ID tokens of sessions. */
  idTokens: Seal;
}

/** What would happen to somebody who signs in at a provider. */
export interface Evaluation {
  /** `sign_in`: to an account that is linked; `link`: it would be linked; `create`: there would be an account. */
  outcome: 'sign_in' | 'link' | 'create' | 'refused';
  /** Why it would be linked, or is refused. */
  reason: LinkReason | RefusalReason | null;
  /** The account, if it is one of the organization. */
  userId: string | null;
  /** The fields of the profile that would change. */
  profile: string[];
  roles: RoleChange[];
}

/** An account that was admitted: what is left is its session. */
interface Admitted {
  userId: string;
  isVerified: boolean;
  metadata: Record<string, unknown>;
}

const CODE_SECONDS = 60;

/**
 * Signs in whoever a provider of an organization vouches for: finds, links or makes the account, updates its profile
 * and its roles, and opens a session. Who may be linked: docs/decisions/0023.
 */
export class FederatedSignIn {
  readonly #deps: FederatedSignInDeps;

  constructor(deps: FederatedSignInDeps) {
    this.#deps = deps;
  }

  /** What {@link signIn} would do now. It changes nothing. */
  async evaluate(provider: ProviderRow, identity: VerifiedIdentity): Promise<Evaluation> {
    const { sql } = this.#deps;
    const now = await findRow(sql, 'identity_providers', { id: provider.id });
    const admission: SignInAdmission = now
      ? await admissionOf(sql, now, identity)
      : { kind: 'refused', reason: 'provider_disabled', account: null };
    const account = admission.kind === 'create' ? null : admission.account;
    const userId = account?.role ? account.id : null;
    if (admission.kind === 'refused' || !now)
      return { outcome: 'refused', reason: reasonOf(admission), userId, profile: [], roles: [] };
    const plans = await planRoles(sql, now, identity.groups, memberOf(admission, now));
    const roles = await Promise.all(plans.map(async (plan) => (userId ? feasible(sql, now, userId, plan) : plan)));
    const profile = account ? profileNews(now, identity, account) : newProfile(identity);
    return {
      outcome: admission.kind === 'linked' ? 'sign_in' : admission.kind,
      reason: reasonOf(admission),
      userId,
      profile: Object.keys(profile),
      roles: roles.map(changeOf),
    };
  }

  /**
   * Signs somebody in, in one change.
   * @throws FORBIDDEN with a reason; FORBIDDEN `account:verified` where addresses must be proven
   */
  async signIn(provider: ProviderRow, identity: VerifiedIdentity, caller: AnyCaller): Promise<SignIn> {
    const { sessions } = this.#deps;
    return this.#admit(provider, identity, caller, async (tx, { userId, metadata }) => {
      const { orgId } = provider;
      const origin = { ...identity, idToken: this.#sealed(provider.id, identity) };
      const opened = { userId, orgId, address: caller.request.ip };
      const pair = await sessions.open(tx, opened, originOf(provider, origin));
      tx.audit({ action: 'login', resourceType: 'user', resourceId: userId, orgId, metadata });
      return { ...pair, userId, orgId };
    });
  }

  #sealed(providerId: string, { idToken }: VerifiedIdentity): Uint8Array<ArrayBuffer> | null {
    return idToken === undefined ? null : this.#deps.idTokens.seal(idToken, providerId);
  }

  /**
   * The same, but for a code that a front end exchanges for the session within a minute. @throws as {@link signIn}
   * @param browser what the cookie of the browser holds that alone may exchange it; `null` for a front end
   */
  async signInForCode(
    provider: ProviderRow,
    identity: VerifiedIdentity,
    caller: AnyCaller,
    browser: string | null,
  ): Promise<string> {
    return this.#admit(provider, identity, caller, async (tx, { userId, metadata }) => {
      const { id, orgId } = provider;
      const code = randomToken();
      tx.insert('sso_codes', {
        hash: tokenHash(code),
        orgId,
        identityProviderId: id,
        userId,
        subject: identity.subject,
        sessionIndex: identity.sessionIndex ?? null,
        nameIdFormat: identity.nameIdFormat ?? null,
        idToken: this.#sealed(id, identity),
        browserHash: browser === null ? null : tokenHash(browser),
        expiresAt: new Date(Date.now() + CODE_SECONDS * 1_000),
      });
      tx.audit({ action: 'update', resourceType: 'user', resourceId: userId, orgId, metadata });
      return code;
    });
  }

  /** Opens the session of a code, once. @throws AUTHENTICATION_FAILED for any fault of the code */
  async exchange(caller: AnyCaller, code: string): Promise<SignIn> {
    const { sql, changes, sessions } = this.#deps;
    const hash = tokenHash(code);
    const found = await findRow(sql, 'sso_codes', { hash });
    const user = found && (await findRow(sql, 'users', { id: found.userId }));
    if (!found || !user) throw unauthenticated();
    const signedIn: AnyCaller = { ...asStranger(caller), signedInAs: { userId: user.id, username: user.username } };
    const signIn = await changes.run(signedIn, async (tx) => {
      await tx.lock('users', { id: user.id, isActive: true, deactivatedAt: null }, 'no key update', unauthenticated);
      const active = { id: found.identityProviderId, isActive: true };
      const provider = await tx.lock('identity_providers', active, 'share', unauthenticated);
      const stored = await tx.lock('sso_codes', { hash }, 'no key update', unauthenticated);
      if (stored.usedAt !== null || stored.expiresAt.getTime() <= Date.now()) throw unauthenticated();
      if (stored.browserHash !== null && stored.browserHash !== tokenHash(caller.request.browser?.token ?? ''))
        throw unauthenticated();
      tx.update('sso_codes', { hash }, { usedAt: new Date() });
      tx.write(statement`update users set last_login = now() where id = ${user.id}`);
      const { userId, orgId } = stored;
      const opened = { userId, orgId, address: caller.request.ip };
      const pair = await sessions.open(tx, opened, originOf(provider, stored));
      const metadata = { identity_provider_id: provider.id, protocol: provider.protocol };
      tx.audit({ action: 'login', resourceType: 'user', resourceId: userId, orgId, metadata });
      return { ...pair, userId, orgId };
    });
    caller.signedInAs = signedIn.signedInAs!;
    return signIn;
  }

  async #admit<Result>(
    provider: ProviderRow,
    identity: VerifiedIdentity,
    caller: AnyCaller,
    finish: (tx: Tx, admitted: Admitted) => Promise<Result>,
  ): Promise<Result> {
    const { config } = this.#deps;
    const signIn = async (): Promise<Result> => {
      const signedIn = asStranger(caller);
      const result = await this.#deps.changes.run(
        signedIn,
        async (tx): Promise<{ done: Result } | { isHeld: true }> => {
          const admitted = await this.#account(tx, signedIn, provider, identity);
          if (config.requireVerifiedEmail && !admitted.isVerified) {
            await this.#askForProof(tx, signedIn, provider, admitted.userId);
            return { isHeld: true };
          }
          tx.write(statement`update users set last_login = now() where id = ${admitted.userId}`);
          resumeTokens(tx, { orgId: provider.orgId, userId: admitted.userId });
          return { done: await finish(tx, admitted) };
        },
      );
      if ('isHeld' in result) throw forbidden('account:verified', 'Confirm your e-mail address before you sign in.');
      caller.signedInAs = signedIn.signedInAs!;
      return result.done;
    };
    try {
      // somebody else may just make the account, or take the name
      return await whileTaken(signIn);
    } catch (error) {
      if (error instanceof Refused) throw this.#recorded(caller, provider, error, identity);
      throw error;
    }
  }

  /** Records a refusal, with the address that the provider of the organization has sent. @returns the error */
  #recorded(
    caller: AnyCaller,
    { id, orgId }: ProviderRow,
    { reason, userId }: Refused,
    { email }: VerifiedIdentity,
  ): ApiError {
    const error = signInRefused(reason);
    this.#deps.activity.record(
      asStranger(caller),
      {
        action: 'login',
        resourceType: 'user',
        resourceId: userId,
        orgId,
        accountId: userId,
        metadata: { identity_provider_id: id, reason, ...(email === null ? {} : { email }) },
      },
      { statusCode: 403, errorCode: error.code },
    );
    return error;
  }

  /** Finds, links or makes the account, with its profile and its roles. @throws Refused */
  async #account(tx: Tx, signedIn: AnyCaller, { id }: ProviderRow, identity: VerifiedIdentity): Promise<Admitted> {
    const { access } = this.#deps;
    const provider = await demandProvider(tx, id);
    const expected = await admissionOf(tx, provider, identity);
    if (expected.kind === 'refused') throw new Refused(expected);
    const plans = await planRoles(tx, provider, identity.groups, memberOf(expected, provider));
    await lockPlaces(tx, provider, plans, expected.kind === 'create');
    const made = expected.kind === 'create' ? await this.#create(tx, signedIn, provider, identity, expected) : null;
    const userId = made ?? expectedId(expected);
    if (!made) await tx.lock('users', { id: userId }, 'no key update', () => new TryAgain(`'${userId}' is gone`));
    const active = { id, isActive: true, resourceVersion: provider.resourceVersion };
    await tx.lock('identity_providers', active, 'share', () => new TryAgain(`'${id}' has just changed`));
    // what was decided before the locks must still hold
    const admission = made ? expected : await admissionOf(tx, provider, identity);
    if (admission.kind === 'refused') throw new Refused(admission);
    if (admission.kind !== expected.kind || (!made && expectedId(admission) !== userId))
      throw new TryAgain(`the account of '${identity.subject}' has just changed`);
    const now = made ? plans : await planRoles(tx, provider, identity.groups, { userId });
    const held = new Set(plans.map(({ workspaceId }) => workspaceId));
    if (now.some(({ workspaceId }) => !held.has(workspaceId))) throw new TryAgain(`roles of '${userId}' have changed`);
    const metadata: Record<string, unknown> = { identity_provider_id: id, protocol: provider.protocol };
    if (admission.kind !== 'create') {
      signedIn.signedInAs = { userId, username: admission.account.username };
      const news = profileNews(provider, identity, admission.account);
      if (Object.keys(news).length > 0) {
        tx.update('users', { id: userId }, news);
        metadata.fields = Object.keys(news);
      }
    }
    if (admission.kind !== 'create') {
      const { kind, isProven, account } = admission;
      const how = { isProven, isNew: kind === 'link', orgId: provider.orgId };
      Object.assign(metadata, await settleAddress(tx, this.#deps, account, how));
    }
    if (admission.kind === 'linked')
      tx.update('identity_links', { identityProviderId: id, userId }, { lastSignInAt: new Date() });
    else {
      metadata.linked = admission.kind === 'create' ? 'created' : admission.why;
      this.#link(tx, provider, identity, { userId, reason: metadata.linked as string });
    }
    const roles = await applyRoles(tx, access, { provider, userId, plans: now, isTold: !made });
    if (made) await this.#welcome(tx, provider, { userId, plans: now });
    if (roles.length > 0) metadata.roles = roles;
    const isVerified = admission.isProven || (admission.kind !== 'create' && admission.account.isVerified);
    return { userId, isVerified, metadata };
  }

  #link(
    tx: Tx,
    { id, orgId, name }: ProviderRow,
    { subject }: VerifiedIdentity,
    { userId, reason }: { userId: string; reason: string },
  ): void {
    removeEndedLinks(tx, { id, userId, subject });
    tx.insert('identity_links', {
      id: newId('identity_link'),
      orgId,
      identityProviderId: id,
      subject,
      userId,
      reason,
      lastSignInAt: new Date(),
    });
    if (reason === 'created') return;
    tx.announce({
      type: 'user.identity_linked',
      orgId: null,
      resourceType: 'user',
      resourceId: userId,
      facts: { name },
    });
  }

  /** Makes the account of somebody new, whom the organization manages. */
  async #create(
    tx: Tx,
    signedIn: AnyCaller,
    { orgId, protocol, defaultRoleId }: ProviderRow,
    identity: VerifiedIdentity,
    { email, isProven }: Extract<SignInAdmission, { kind: 'create' }>,
  ): Promise<string> {
    const { access } = this.#deps;
    const username = await freeUsername(tx, identity, email);
    const user = { id: newId('user'), email, username };
    // without a proof, the account has the address and does not hold it: whoever can read its mails may register
    tx.insert('users', {
      ...user,
      emailKey: null,
      usernameKey: username.toLowerCase(),
      authProvider: protocol,
      homeOrgId: orgId,
      isVerified: isProven,
      ...newProfile(identity),
    });
    signedIn.signedInAs = { userId: user.id, username };
    await joinOrganization(tx, access, { orgId, userId: user.id, role: asRole(defaultRoleId), addedBy: null });
    if (isProven) await holdAddress(tx, user.id, email);
    tx.audit({ action: 'create', resourceType: 'user', resourceId: user.id, orgId });
    return user.id;
  }

  /** Takes somebody new into the workspace of the provider, unless their groups do, and tells the owners. */
  async #welcome(
    tx: Tx,
    { orgId, name, defaultWorkspaceId: workspaceId, defaultWorkspaceRole }: ProviderRow,
    { userId, plans }: { userId: string; plans: readonly RolePlan[] },
  ): Promise<void> {
    if (workspaceId !== null) {
      const role = plans.some((plan) => plan.workspaceId === workspaceId) ? null : asRole(defaultWorkspaceRole);
      await joinWorkspace(tx, this.#deps.access, { orgId, workspaceId, userId, role });
    }
    tx.announce({
      type: 'user.arrived',
      orgId,
      resourceType: 'user',
      resourceId: userId,
      facts: { userIds: await ownersOf(tx, orgId), namedUserId: userId, name },
    });
  }

  /** Mails the link that a sign-in waits for, unless one that was mailed before still works. */
  async #askForProof(tx: Tx, caller: AnyCaller, { orgId }: ProviderRow, userId: string): Promise<void> {
    if (await hasLiveEmailToken(tx, userId, 'verify_email')) return;
    const user = await findRow(tx, 'users', { id: userId });
    if (user && (await this.#deps.mailBudgets.isGranted(caller, { to: user.email, orgId })))
      this.#deps.mail.verification(tx, user, issueEmailToken(tx, user, 'verify_email'));
  }
}

/** Somebody who is not signed in. */
class Refused extends Error {
  override readonly name = 'Refused';
  readonly reason: RefusalReason;
  /** The account that it is about, if it is one of the organization. */
  readonly userId: string | null;

  constructor({ reason, account }: Extract<SignInAdmission, { kind: 'refused' }>) {
    super(`The sign-in is refused: ${reason}`);
    this.reason = reason;
    this.userId = account?.role ? account.id : null;
  }
}

/** The caller without the principal of the request's token: somebody else may sign in with the same browser. */
const asStranger = (caller: AnyCaller): AnyCaller => ({ ...caller, principal: null });

const originOf = (
  { id, protocol }: ProviderRow,
  {
    subject,
    sessionIndex,
    nameIdFormat,
    idToken,
  }: Pick<VerifiedIdentity, 'subject'> & {
    [Name in 'sessionIndex' | 'nameIdFormat']?: string | null;
  } & Pick<SessionOrigin, 'idToken'>,
): Omit<SessionOrigin, 'factorAt'> => ({
  method: protocol,
  identityProviderId: id,
  subject,
  sessionIndex: sessionIndex ?? null,
  nameIdFormat: nameIdFormat ?? null,
  idToken,
});

async function demandProvider(tx: Tx, id: string): Promise<ProviderRow> {
  const provider = await findRow(tx, 'identity_providers', { id });
  if (!provider) throw new Refused({ kind: 'refused', reason: 'provider_disabled', account: null });
  return provider;
}

/**
 * Locks where roles change, as every change of a role does; else only that the organization stays.
 * @param isNew the user joins the workspace of the provider, too
 */
async function lockPlaces(
  tx: Tx,
  { orgId, defaultWorkspaceId }: ProviderRow,
  plans: readonly RolePlan[],
  isNew: boolean,
): Promise<void> {
  const changesOrganization = plans.some(({ workspaceId }) => workspaceId === null);
  await lockOrganization(tx, orgId, changesOrganization ? 'no key update' : 'share');
  const workspaceIds = plans.flatMap(({ workspaceId }) => workspaceId ?? []);
  if (isNew && defaultWorkspaceId !== null) workspaceIds.push(defaultWorkspaceId);
  if (workspaceIds.length > 0)
    await tx.lockUnread(
      'workspaces',
      statement`t.org_id = ${orgId} and t.id = any(${workspaceIds}::text[]) and t.deleted_at is null`,
      'no key update',
    );
}

const memberOf = (admission: SignInAdmission, { defaultRoleId }: ProviderRow) =>
  admission.kind === 'create' ? { newAs: asRole(defaultRoleId) } : { userId: expectedId(admission) };

function expectedId(admission: SignInAdmission): string {
  if (admission.kind === 'create' || !admission.account) throw new Error('Nobody was admitted.');
  return admission.account.id;
}

function reasonOf(admission: SignInAdmission): Evaluation['reason'] {
  if (admission.kind === 'refused') return admission.reason;
  return admission.kind === 'link' ? admission.why : null;
}

/** Only what the organization manages is its provider's to change. */
function profileNews(
  provider: ProviderRow,
  identity: VerifiedIdentity,
  account: Parameters<typeof newsOf>[1] & { homeOrgId: string | null },
): ReturnType<typeof newsOf> {
  return provider.autoUpdateProfile && account.homeOrgId === provider.orgId ? newsOf(identity, account) : {};
}
