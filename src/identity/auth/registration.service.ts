import { tokenHash } from '../../access/random-token.ts';
import type { Budget } from '../../access/throttle.ts';
import { brokenUnique } from '../../data/changes.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { Invitation, User } from '../../generated/prisma/client.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { alreadyExists, forbidden, invalidInput } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Role } from '../../kernel/roles.ts';
import { foundOrganization } from '../../tenancy/organizations/founding.ts';
import {
  acceptInvitation,
  deadInvitation,
  findPendingInvitation,
} from '../../tenancy/organizations/invitation-token.ts';
import { joinOrganization } from '../../tenancy/organizations/membership.ts';
import type { AuthDeps, SignIn } from './auth.service.ts';
import { issueEmailToken } from './email-tokens.ts';
import { demandGoodPassword } from './password-policy.ts';

export interface NewAccount {
  email: string;
  username: string;
  password: string;
  fullName?: string | null;
}

const closed = () => forbidden('user:create', 'Registration is closed: ask for an invitation.');

/**
 * An arbitrary number, the same on all nodes. Only one transaction at a time can have this lock and check whether the
 * instance is empty.
 */
const FIRST_ACCOUNT_LOCK = 7_206_001;

/** Creates accounts: by registration, or by an administrator. */
export class RegistrationService {
  readonly #deps: AuthDeps;
  readonly #byClient: Budget;

  constructor(deps: AuthDeps) {
    this.#deps = deps;
    this.#byClient = deps.budgets.of('registrations', deps.config.registrationsPerMinute, 60);
  }

  /** Whether anyone may register without an invitation. */
  get isOpen(): boolean {
    return this.#deps.config.allowRegistration;
  }

  /** The address that an invitation link is for. A link that is unknown or no longer works is not valid. */
  async inviteInfo(token: string): Promise<{ email: string; valid: boolean }> {
    const invitation = await findPendingInvitation(this.#deps.sql, tokenHash(token));
    return invitation ? { email: invitation.email, valid: true } : { email: '', valid: false };
  }

  /**
   * Creates an account and signs it in. Without an invitation, it gets its own organization with a default workspace;
   * with one, it joins the organization that invited it. The first account of an empty instance administers the
   * platform.
   * @throws FORBIDDEN `user:create` where registration is closed, RESOURCE_ALREADY_EXISTS, RATE_LIMIT_EXCEEDED
   */
  async register(caller: AnyCaller, input: NewAccount & { inviteToken?: string | null }): Promise<SignIn> {
    const { sql, changes, sessions, mail, mailBudgets, config } = this.#deps;
    await this.#byClient.demand(caller.request.ip);
    const invitation = input.inviteToken ? await findPendingInvitation(sql, tokenHash(input.inviteToken)) : null;
    if (!invitation && !config.allowRegistration) throw closed();
    if (input.inviteToken && !invitation) throw deadInvitation(['input', 'inviteToken']);
    if (invitation && invitation.emailKey !== input.email.toLowerCase())
      throw config.allowRegistration
        ? invalidInput(['input', 'email'], 'the invitation was sent to another address')
        : closed();
    await this.#check(input, ['input', 'password']);
    // the address of an invitation got its mail, and is proven by it
    const isMailed = !invitation && (await mailBudgets.isGranted({ ...caller, principal: null }, { to: null }));
    const passwordHash = await this.#deps.passwords.hash(input.password);
    // a user who registers is not known yet, whatever token the request carries
    const newcomer: AnyCaller = { ...caller, principal: null };
    const signIn = await this.#unique(input, () =>
      changes.run(newcomer, async (tx) => {
        const isFirst = await this.#isFirstAccount(tx);
        const user = insertUser(tx, input, {
          passwordHash,
          isVerified: invitation !== null,
          isPlatformAdmin: isFirst,
        });
        newcomer.signedInAs = { userId: user.id, username: user.username };
        const orgId = invitation
          ? await this.#joinInviting(tx, invitation, user)
          : await this.#foundOrganization(tx, user);
        tx.audit({ action: 'create', resourceType: 'user', resourceId: user.id, orgId });
        const pair = await sessions.open(tx, { userId: user.id, orgId, address: caller.request.ip });
        if (isMailed) {
          const token = issueEmailToken(tx, user, 'verify_email');
          mail.verification(tx, user, token);
        }
        return { ...pair, userId: user.id, orgId };
      }),
    );
    caller.signedInAs = newcomer.signedInAs;
    return signIn;
  }

  /**
   * Creates an account for somebody else, as a member of `orgId`. That organization then manages the account.
   * @throws RESOURCE_ALREADY_EXISTS
   */
  async createFor(caller: AnyCaller, orgId: string, input: NewAccount & { role: Role }): Promise<string> {
    const { changes, access, mail, mailBudgets, passwords } = this.#deps;
    await this.#check(input, ['input', 'password']);
    const isMailed = await mailBudgets.isGranted(caller, { to: null, orgId });
    const passwordHash = await passwords.hash(input.password);
    return this.#unique(input, () =>
      changes.run(caller, async (tx) => {
        const user = insertUser(tx, input, {
          passwordHash,
          isVerified: false,
          isPlatformAdmin: false,
          homeOrgId: orgId,
        });
        await joinOrganization(tx, access, {
          orgId,
          userId: user.id,
          role: input.role,
          addedBy: caller.principal?.userId ?? null,
        });
        tx.audit({ action: 'create', resourceType: 'user', resourceId: user.id, orgId });
        if (isMailed) mail.verification(tx, user, issueEmailToken(tx, user, 'verify_email'));
        return user.id;
      }),
    );
  }

  /** Does all checks that are possible before the costly hash of the password. */
  async #check(input: NewAccount, path: string[]): Promise<void> {
    await demandGoodPassword(input.password, input, this.#deps.config.passwordBlocklist, path);
    await this.#refuseTaken(input);
  }

  async #refuseTaken({ email, username }: NewAccount): Promise<void> {
    const taken = await this.#deps.prisma.user.findFirst({
      where: { OR: [{ emailKey: email.toLowerCase() }, { usernameKey: username.toLowerCase() }] },
      select: { emailKey: true },
    });
    if (!taken) return;
    throw taken.emailKey === email.toLowerCase()
      ? alreadyExists('user', 'email', email)
      : alreadyExists('user', 'username', username);
  }

  /** Of many simultaneous requests, exactly one wins. The others get the same answer as later ones. */
  async #unique<T>(input: NewAccount, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!brokenUnique(error)) throw error;
      await this.#refuseTaken(input);
      throw error;
    }
  }

  async #isFirstAccount(tx: Tx): Promise<boolean> {
    const anybody = () => tx.query(statement`select 1 from users limit 1`);
    if ((await anybody()).length > 0) return false;
    await tx.query(statement`select pg_advisory_xact_lock(${FIRST_ACCOUNT_LOCK})`);
    return (await anybody()).length === 0;
  }

  /** The inviting organization manages the account of a new user. */
  async #joinInviting(tx: Tx, invitation: Invitation, user: MadeUser): Promise<string> {
    const refusal = this.isOpen ? deadInvitation(['input', 'inviteToken']) : closed();
    const orgId = await acceptInvitation(tx, this.#deps.access, invitation, user, refusal);
    tx.update('users', { id: user.id }, { homeOrgId: orgId });
    return orgId;
  }

  async #foundOrganization(tx: Tx, user: MadeUser): Promise<string> {
    const name = `${user.fullName ?? user.username}'s organization`;
    const { organization, workspaceId } = await foundOrganization(tx, this.#deps.access, { founderId: user.id, name });
    tx.update('users', { id: user.id }, { defaultWorkspaceId: workspaceId, homeOrgId: organization.id });
    return organization.id;
  }
}

/** The fields of the new account that the rest of a registration needs. */
type MadeUser = Pick<User, 'id' | 'email' | 'username' | 'isVerified'> & { fullName: string | null };

function insertUser(
  tx: Tx,
  input: NewAccount,
  state: { passwordHash: string; isVerified: boolean; isPlatformAdmin: boolean; homeOrgId?: string },
): MadeUser {
  const { email, username } = input;
  const user = { id: newId('user'), email, username, fullName: input.fullName ?? null, ...state };
  tx.insert('users', { ...user, emailKey: email.toLowerCase(), usernameKey: username.toLowerCase() });
  return user;
}
