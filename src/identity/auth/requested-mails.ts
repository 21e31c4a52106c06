import type { Budgets } from '../../access/budgets.ts';
import type { MailBudgets } from '../../access/mail-budgets.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Changes } from '../../data/changes.ts';
import { findRow } from '../../data/find-row.ts';
import type { PrismaClient } from '../../generated/prisma/client.ts';
import type { AnyCaller } from '../../kernel/caller.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { Task } from '../../kernel/tasks.ts';
import type { AccountMail } from '../../platform/mail/account-mail.ts';
import { livingTokensOf, NO_TOKENS } from '../api-tokens/living-tokens.ts';
import { issueEmailToken } from './email-tokens.ts';

/** A mail that somebody asked for without being signed in. */
interface Request {
  email: string;
  purpose: 'verify_email' | 'reset_password';
  /** Who asks, if somebody is signed in. */
  userId?: string;
}

interface RequestedMailsDeps {
  prisma: PrismaClient;
  changes: Changes;
  mail: AccountMail;
  mailBudgets: MailBudgets;
  budgets: Budgets;
}

const TRIES = 8;

/**
 * Mails that anybody may request by naming an address. A request only adds a job, whatever the address is. So neither
 * the response nor its time reveals whether the account exists.
 */
export class RequestedMails {
  readonly tasks: readonly Task[];
  readonly #deps: RequestedMailsDeps;
  readonly #answer: Task<Request>;
  // too many requests: ignored silently per mail address, answered with 429 per client address
  readonly #byAddress: Budget;
  readonly #byClient: Budget;

  constructor(deps: RequestedMailsDeps) {
    this.#deps = deps;
    this.#byAddress = deps.budgets.of('requested_mails', 3, 3_600);
    this.#byClient = deps.budgets.of('requested_mails_of_client', 10, 3_600);
    this.#answer = { name: 'requested_mail', tries: TRIES, run: (request) => this.#prepare(request) };
    this.tasks = [this.#answer];
  }

  /**
   * Mails a new link if an active account holds the address and needs one; to who is signed in, also if their account
   * has the address without holding it.
   * @throws RATE_LIMIT_EXCEEDED when the client asks too often. Too many requests for one address are ignored silently.
   */
  async request(caller: AnyCaller, email: string, purpose: Request['purpose']): Promise<void> {
    await this.#byClient.demand(caller.request.ip);
    if ((await this.#byAddress.take(email.toLowerCase())) > 0) return;
    if (!(await this.#deps.mailBudgets.isGranted(caller, { to: email }))) return;
    const userId = caller.principal?.type === 'user' ? caller.principal.userId : undefined;
    await this.#deps.changes.run(caller, async (tx) =>
      tx.enqueue(this.#answer, { email, purpose, ...(userId ? { userId } : {}) }),
    );
  }

  async #prepare({ email, purpose, userId }: Request): Promise<void> {
    const { prisma, changes, mail } = this.#deps;
    const emailKey = email.toLowerCase();
    const own = userId && purpose === 'verify_email' ? await prisma.user.findUnique({ where: { id: userId } }) : null;
    const user = own?.email.toLowerCase() === emailKey ? own : await prisma.user.findUnique({ where: { emailKey } });
    const isDone = user?.isVerified && user.emailKey !== null;
    if (!user?.isActive || (purpose === 'verify_email' && isDone)) return;
    await changes.run(systemCaller('requested mail'), async (tx) => {
      // somebody else may have proven the address meanwhile
      const now = await findRow(tx, 'users', { id: user.id });
      if (now?.emailKey !== user.emailKey) return;
      const token = issueEmailToken(tx, user, purpose);
      if (purpose === 'verify_email') return mail.verification(tx, user, token);
      // the reset of an account whose address was never verified revokes its API tokens anyway
      return mail.passwordReset(tx, user, token, user.isVerified ? await livingTokensOf(tx, user.id) : NO_TOKENS);
    });
  }
}
