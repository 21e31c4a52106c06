import type { Budgets } from '../../access/budgets.ts';
import type { MailBudgets } from '../../access/mail-budgets.ts';
import type { Budget } from '../../access/throttle.ts';
import type { Sql } from '../../data/sql.ts';
import type { Tx } from '../../data/tx.ts';
import type { PrismaClient } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { alreadyExists } from '../../kernel/errors.ts';
import type { AccountMail } from '../../platform/mail/account-mail.ts';
import { demandFreshFactor } from '../factors/fresh-factor.ts';
import type { CurrentPassword } from './current-password.ts';
import { issueEmailToken } from './email-tokens.ts';
import { demandKeptDomain } from './kept-domains.ts';

interface Account {
  id: string;
  email: string;
  username: string;
  isVerified: boolean;
}

interface EmailChangeDeps {
  sql: Sql;
  prisma: PrismaClient;
  mail: AccountMail;
  mailBudgets: MailBudgets;
  budgets: Budgets;
  currentPassword: CurrentPassword;
}

/** Changes the e-mail address of an account. The old address stays until the link mailed to the new one is used. */
export class EmailChange {
  readonly #deps: EmailChangeDeps;
  // nobody may flood a stranger's mailbox
  readonly #mailsByAddress: Budget;

  constructor(deps: EmailChangeDeps) {
    this.#deps = deps;
    this.#mailsByAddress = deps.budgets.of('email_changes', 3, 3_600);
  }

  /**
   * All checks before a mail is sent to the new address. The caller proves who they are, also when they change an
   * account that they manage.
   * @throws as `CurrentPassword.demand` and `demandFreshFactor`, RATE_LIMIT_EXCEEDED, RESOURCE_ALREADY_EXISTS when
   * another account has the address
   */
  async prepare(
    caller: Caller,
    userId: string,
    { email, currentPassword }: { email: string; currentPassword?: string | null },
  ): Promise<void> {
    await this.#deps.currentPassword.demand(caller, currentPassword, ['input', 'currentPassword']);
    await demandKeptDomain(this.#deps.sql, userId, email);
    await demandFreshFactor(this.#deps.sql, caller);
    const emailKey = email.toLowerCase();
    const other = await this.#deps.prisma.user.findFirst({
      where: { emailKey, id: { not: userId } },
      select: { id: true },
    });
    if (other) throw alreadyExists('user', 'email', email);
    await this.#mailsByAddress.demand(emailKey);
    await this.#deps.mailBudgets.demand(caller, { to: email });
  }

  /**
   * Mails the link to the new address and a notice to the old one. An address that was never proven gets few: it may be
   * a stranger's. A link mailed earlier stops working.
   */
  async begin(tx: Tx, user: Account, email: string): Promise<void> {
    const token = issueEmailToken(tx, { id: user.id, email }, 'change_email');
    const { mail, mailBudgets } = this.#deps;
    if (user.isVerified || (await mailBudgets.isGrantedTo(user.email))) mail.emailChangeAsked(tx, user);
    mail.emailChange(tx, { ...user, email }, token);
  }
}
