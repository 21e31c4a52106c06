import type { Config } from '../config.ts';
import type { AnyCaller } from '../kernel/caller.ts';
import type { Budgets } from './budgets.ts';
import type { Budget } from './throttle.ts';

const HOUR = 3_600;
/** Of all kinds together, whoever asks for them. Single kinds have smaller limits of their own. */
const TO_ONE_ADDRESS = 10;

/** A mail that somebody makes the service send. */
export interface AskedMail {
  /** `null` for one that an address gets once at most: the first of its account. */
  to: string | null;
  /** The organization in whose name it is sent. */
  orgId?: string;
}

/**
 * Budgets of everything that sends a mail to an address which somebody names: per user, per organization, per client
 * address and per recipient. So nobody uses the service to write to strangers, through however many organizations.
 */
export class MailBudgets {
  readonly #byAsker: Budget;
  readonly #byRecipient: Budget;

  constructor({ mailsPerHour }: Pick<Config, 'mailsPerHour'>, budgets: Budgets) {
    this.#byAsker = budgets.of('mails', mailsPerHour, HOUR);
    this.#byRecipient = budgets.of('mails_to_address', TO_ONE_ADDRESS, HOUR);
  }

  /** Takes one mail of each budget, or of none. @throws RATE_LIMIT_EXCEEDED */
  async demand(caller: AnyCaller, mail: AskedMail): Promise<void> {
    const askers = askersOf(caller, mail);
    const recipient = mail.to?.toLowerCase();
    for (const asker of askers) await this.#byAsker.check(asker);
    if (recipient) await this.#byRecipient.demand(recipient);
    for (const asker of askers) await this.#byAsker.demand(asker);
  }

  /**
   * The same for what goes on without the mail: an account that is made, whose owner can ask for the mail later, and an
   * answer that must not tell how many mails an address got.
   * @returns whether the mail may be sent
   */
  async isGranted(caller: AnyCaller, mail: AskedMail): Promise<boolean> {
    let isGranted = true;
    for (const asker of askersOf(caller, mail)) isGranted = (await this.#byAsker.take(asker)) === 0 && isGranted;
    return isGranted && (mail.to === null || (await this.isGrantedTo(mail.to)));
  }

  /** Takes one mail of the budget of its recipient alone, for a notice. */
  async isGrantedTo(to: string): Promise<boolean> {
    return (await this.#byRecipient.take(to.toLowerCase())) === 0;
  }
}

function askersOf({ principal, request }: AnyCaller, { orgId }: Pick<AskedMail, 'orgId'>): string[] {
  return [
    `client ${request.ip}`,
    ...(principal ? [`user ${principal.userId}`] : []),
    ...(orgId ? [`organization ${orgId}`] : []),
  ];
}
