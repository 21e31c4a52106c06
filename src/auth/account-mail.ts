import type { Background } from '../infra/background.ts';
import type { Mailer } from '../infra/mail.ts';
import type { LivingToken, LivingTokens } from '../tokens/living-tokens.ts';

interface Recipient {
  email: string;
  username: string;
}

/** The mails of accounts. They leave after the answer, so that its time tells nothing. */
export class AccountMail {
  readonly #mailer: Mailer;
  readonly #background: Background;
  readonly #publicUrl: () => string;

  constructor(deps: { mailer: Mailer; background: Background; publicUrl: () => string }) {
    this.#mailer = deps.mailer;
    this.#background = deps.background;
    this.#publicUrl = deps.publicUrl;
  }

  verification(to: Recipient, token: string): void {
    this.#send(
      to.email,
      'Confirm your e-mail address',
      `Hello ${to.username},\n\nthe account '${to.username}' was made with this e-mail address. Open this link to confirm that both are yours. It works for 24 hours. API tokens that were made before stop working.\n\nIf you did not make the account, do not open the link.`,
      `/account/verify-email?token=${token}`,
    );
  }

  /** For the address that an account changes to. */
  emailChange(to: Recipient, token: string): void {
    this.#send(
      to.email,
      'Confirm your e-mail address',
      `Hello ${to.username},\n\nthe account '${to.username}' asks to use this e-mail address from now on. Open this link to confirm it. It works for 24 hours; until then the account keeps its old address.\n\nIf the account is not yours, do not open the link.`,
      `/account/verify-email?token=${token}`,
    );
  }

  /** For the address that an account still has. */
  emailChangeAsked(to: Recipient): void {
    this.#send(
      to.email,
      'Your e-mail address is about to change',
      `Hello ${to.username},\n\nsomebody who is signed in to your account, or administers it, asked to change its e-mail address. This address stays until the new one is confirmed. If it was not you, reset your password at once: that stops the change.`,
    );
  }

  passwordReset(to: Recipient, token: string, living: LivingTokens): void {
    this.#send(
      to.email,
      'Reset your password',
      `Hello ${to.username},\n\nopen this link to choose a new password. It works once, for one hour. If you did not ask for it, ignore this mail.${listed('These API tokens will keep working unless you choose to revoke them with the reset', living)}`,
      `/account/reset-password?token=${token}`,
    );
  }

  invitation(email: string, organization: string, invitedBy: string, token: string): void {
    const [name, sender] = [oneLine(organization), oneLine(invitedBy)];
    this.#send(
      email,
      `You are invited to ${name}`,
      `Hello,\n\n${sender} invites you to join '${name}'. Open this link to accept. It works for 7 days.`,
      `/account/accept-invitation?token=${token}`,
    );
  }

  passwordChanged(to: Recipient, { living, revoked }: { living: LivingTokens; revoked: number }): void {
    const ended = revoked > 0 ? ' Your API tokens were revoked.' : '';
    this.#send(
      to.email,
      'Your password was changed',
      `Hello ${to.username},\n\nyour password was changed and your other sessions were ended.${ended} If it was not you, reset your password at once and tell your administrator.${listed('These API tokens keep working; revoke those that you do not know', living)}`,
    );
  }

  emailChanged(to: Recipient, newEmail: string): void {
    this.#send(
      to.email,
      'Your e-mail address was changed',
      `Hello ${to.username},\n\nthe e-mail address of your account is now ${newEmail}. If it was not you, tell your administrator.`,
    );
  }

  /** For the people of a secret: what is due, in words. */
  secretNotice(to: Recipient, subject: string, sentence: string): void {
    this.#send(to.email, oneLine(subject), `Hello ${to.username},\n\n${oneLine(sentence, 600)}`);
  }

  /** For the maker of a token. `days` until the end; 0: it has expired. */
  tokenExpires(to: Recipient, token: { name: string; prefix: string; days: number; expiresAt: Date }): void {
    const what = `the token '${oneLine(token.name)}' (${token.prefix}…)`;
    const when = minuteOf(token.expiresAt);
    const sentence =
      token.days === 0
        ? `${what} has expired. It can be refreshed for 30 days.`
        : `${what} expires on ${when} UTC. Refresh it, or issue a new one.`;
    this.#send(
      to.email,
      token.days === 0 ? 'A token has expired' : `A token expires in ${token.days} days`,
      `Hello ${to.username},\n\n${sentence}`,
    );
  }

  #send(to: string, subject: string, text: string, path?: string): void {
    const link = path ? `${this.#publicUrl()}${path}` : undefined;
    this.#background.run(`mail: ${subject}`, () =>
      this.#mailer.send({ to, subject, text: link ? `${text}\n\n${link}\n` : `${text}\n`, ...(link ? { link } : {}) }),
    );
  }
}

/** A paragraph that names tokens, without anything secret; empty where there are none. */
function listed(heading: string, { tokens, total }: LivingTokens): string {
  if (total === 0) return '';
  const more = total > tokens.length ? [`- and ${total - tokens.length} more`] : [];
  return `\n\n${[`${heading}:`, ...tokens.map(lineOf), ...more].join('\n')}`;
}

function lineOf({ name, prefix, organization, lastUsedAt, expiresAt }: LivingToken): string {
  const used = lastUsedAt ? `last used on ${minuteOf(lastUsedAt)} UTC` : 'never used';
  const end = expiresAt ? `expires on ${minuteOf(expiresAt)} UTC` : 'never expires';
  return `- '${oneLine(name)}' (${prefix}…) of ${oneLine(organization)}: ${used}, ${end}`;
}

const minuteOf = (time: Date): string => time.toISOString().slice(0, 16).replace('T', ' ');

/** Names are chosen by strangers: they must not shape the mail. */
const oneLine = (name: string, length = 100): string =>
  name
    .replaceAll(/[\s\p{C}]+/gu, ' ')
    .trim()
    .slice(0, length);
