import { randomUUID } from 'node:crypto';
import type { Task } from '../../kernel/tasks.ts';
import { minuteOf, nameInMail, oneLine, withoutAddresses } from '../../kernel/wording.ts';
import type { Seal } from '../keys/seal.ts';
import { type Digest, digestMail } from './digest-mail.ts';
import type { Mail, Mailer } from './mail.ts';

interface Recipient {
  email: string;
  username: string;
}

/** A notification as a mail. */
export interface MailedNotification {
  subject: string;
  sentence: string;
  /** The page that it leads to. */
  link: string | null;
  /** The link that ends mails of its kind. */
  unsubscribe: string;
}

/** What the database stores of a waiting mail. Sealed, because the links in its text let somebody in. */
interface SealedMail {
  id: string;
  sealed: string;
}

/** The part of a transaction that mails need: it promises a job. */
export interface Mailing {
  enqueue<Payload extends object>(task: Task<Payload>, payload: Payload): void;
}

/** A token as its owner recognises it. */
export interface LivingToken {
  name: string;
  prefix: string;
  organization: string;
  lastUsedAt: Date | null;
  /** The token can still be refreshed for some time afterwards. */
  expiresAt: Date | null;
}

/** The newest tokens and the total number. */
export interface LivingTokens {
  tokens: readonly LivingToken[];
  total: number;
}

/** An application that a user has let in. */
export interface LivingGrant {
  name: string;
  organization: string;
  lastUsedAt: Date | null;
}

/** The newest applications and the total number. */
export interface LivingGrants {
  applications: readonly LivingGrant[];
  total: number;
}

// the waits add up to 16 hours: longer than a mail server is down, and than most links work
const TRIES = 12;

/**
 * Sends the mails of accounts. Each mail is a job of the change that promises it. So it is sent after the response,
 * whose time reveals nothing, and survives the end of the process. A mail is sent twice if a node dies between the
 * server's answer and the end of the job.
 */
export class AccountMail {
  readonly tasks: readonly Task[];
  readonly #sending: Task<SealedMail>;
  readonly #seal: Seal;
  readonly #publicUrl: () => string;

  /** @param deps.seal keeps the texts of mails that wait from whoever reads the database */
  constructor(deps: { mailer: Mailer; seal: Seal; publicUrl: () => string }) {
    this.#seal = deps.seal;
    this.#publicUrl = deps.publicUrl;
    this.#sending = {
      name: 'mail',
      tries: TRIES,
      run: ({ id, sealed }) => deps.mailer.send(this.#open(id, sealed)),
    };
    this.tasks = [this.#sending];
  }

  verification(tx: Mailing, to: Recipient, token: string): void {
    this.#enqueue(
      tx,
      to.email,
      'Confirm your e-mail address',
      `Hello ${to.username},\n\nthe account '${to.username}' was created with this e-mail address. ` +
        'Open this link to confirm that both are yours. It works for 24 hours. ' +
        'API tokens that were created before stop working.\n\n' +
        'If you did not create the account, do not open the link.',
      `/account/verify-email?token=${token}`,
    );
  }

  /** Goes to the address that an account changes to. */
  emailChange(tx: Mailing, to: Recipient, token: string): void {
    this.#enqueue(
      tx,
      to.email,
      'Confirm your e-mail address',
      `Hello ${to.username},\n\nthe account '${to.username}' asks to use this e-mail address from now on. ` +
        'Open this link to confirm it. It works for 24 hours; until then the account keeps its old address.\n\n' +
        'If the account is not yours, do not open the link.',
      `/account/verify-email?token=${token}`,
    );
  }

  /** Goes to the address that an account still has. */
  emailChangeAsked(tx: Mailing, to: Recipient): void {
    this.#enqueue(
      tx,
      to.email,
      'Your e-mail address is about to change',
      `Hello ${to.username},\n\nsomebody who is signed in to your account, or administers it, asked to change its ` +
        'e-mail address. This address stays until the new one is confirmed. ' +
        'If it was not you, reset your password at once: that stops the change.',
    );
  }

  passwordReset(tx: Mailing, to: Recipient, token: string, living: LivingTokens): void {
    this.#enqueue(
      tx,
      to.email,
      'Reset your password',
      `Hello ${to.username},\n\nopen this link to choose a new password. It works once, for one hour. ` +
        'If you did not ask for it, ignore this mail.' +
        listed('These API tokens will keep working unless you choose to revoke them with the reset', living),
      `/account/reset-password?token=${token}`,
    );
  }

  invitation(tx: Mailing, email: string, organization: string, invitedBy: string, token: string): void {
    const [name, sender] = [nameInMail(organization), nameInMail(invitedBy)];
    this.#enqueue(
      tx,
      email,
      `You are invited to the organization '${name}'`,
      `Hello,\n\n${sender} invites you to join the organization '${name}'. Open this link to accept. ` +
        'It works for 7 days. If you do not know them, ignore this mail.',
      `/account/accept-invitation?token=${token}`,
    );
  }

  passwordChanged(
    tx: Mailing,
    to: Recipient,
    { living, grants, revoked }: { living: LivingTokens; grants: LivingGrants; revoked: number },
  ): void {
    const ended = revoked > 0 ? ' Your API tokens were revoked.' : '';
    this.#enqueue(
      tx,
      to.email,
      'Your password was changed',
      `Hello ${to.username},\n\nyour password was changed and your other sessions were ended.${ended} ` +
        'If it was not you, reset your password at once and tell your administrator.' +
        listed('These API tokens keep working; revoke those that you do not know', living) +
        listedGrants('These applications still act for you; disconnect those that you do not know', grants),
    );
  }

  emailChanged(tx: Mailing, to: Recipient, newEmail: string): void {
    this.#enqueue(
      tx,
      to.email,
      'Your e-mail address was changed',
      `Hello ${to.username},\n\nthe e-mail address of your account is now ${newEmail}. ` +
        'If it was not you, tell your administrator.',
    );
  }

  /** Goes to the postmaster of a mail domain, which an organization says is its own. */
  domainProof(
    tx: Mailing,
    to: string,
    proof: { domain: string; organization: string; by: string; code: string },
  ): void {
    const { domain, code } = proof;
    const [organization, by] = [nameInMail(proof.organization), nameInMail(proof.by)];
    this.#enqueue(
      tx,
      to,
      `Is ${domain} yours?`,
      `Hello,\n\n${by} of '${organization}' says that the domain ${domain} is theirs. If that is right, give them ` +
        `this code. It works for a day:\n\n${code}\n\nWith it, their identity provider signs in everybody in ` +
        `'${organization}' who has an address in ${domain}. If you do not know them, do nothing.`,
    );
  }

  /** A notification, for a user who wants it. */
  notification(tx: Mailing, to: Recipient, { subject, sentence, link, unsubscribe }: MailedNotification): void {
    // both have names in them that others chose
    const title = withoutAddresses(subject, 200, to.email);
    const text = `Hello ${to.username},\n\n${withoutAddresses(sentence, 2_000, to.email)}`;
    this.#send(tx, { to: to.email, subject: title, text, ...(link === null ? {} : { link }), unsubscribe });
  }

  /** What is new for a user, since the digest before. */
  digest(tx: Mailing, to: Recipient, { unsubscribe, ...digest }: Digest & { unsubscribe: string }): void {
    this.#send(tx, { to: to.email, ...digestMail(to.username, to.email, digest), unsubscribe });
  }

  #enqueue(tx: Mailing, to: string, subject: string, text: string, path?: string): void {
    this.#send(tx, { to, subject, text, ...(path ? { link: `${this.#publicUrl()}${path}` } : {}) });
  }

  #send(tx: Mailing, { text, html, ...given }: Omit<Mail, 'id'>): void {
    const { link, unsubscribe } = given;
    const id = randomUUID();
    const ending = unsubscribe === undefined ? '' : `\n-- \nTo get no more mails of this kind: ${unsubscribe}\n`;
    const end = unsubscribe === undefined ? '' : `\n<p><a href="${unsubscribe}">Get no more mails of this kind</a></p>`;
    const mail: Mail = {
      id,
      ...given,
      text: `${[text, ...(link ? [link] : [])].join('\n\n')}\n${ending}`,
      ...(html === undefined ? {} : { html: `${html}${end}\n` }),
    };
    tx.enqueue(this.#sending, { id, sealed: this.#seal.seal(JSON.stringify(mail), id).toString('base64') });
  }

  #open(id: string, sealed: string): Mail {
    return JSON.parse(this.#seal.open(Buffer.from(sealed, 'base64'), id)) as Mail;
  }
}

/** A paragraph that lists tokens without anything secret. Empty if there are none. */
const listed = (heading: string, { tokens, total }: LivingTokens): string => listOf(heading, tokens.map(lineOf), total);

function listOf(heading: string, lines: readonly string[], total: number): string {
  if (total === 0) return '';
  const more = total > lines.length ? [`- and ${total - lines.length} more`] : [];
  return `\n\n${[`${heading}:`, ...lines, ...more].join('\n')}`;
}

function listedGrants(heading: string, { applications, total }: LivingGrants): string {
  const lines = applications.map(
    ({ name, organization, lastUsedAt }) => `- '${oneLine(name)}' of ${oneLine(organization)}: ${usedAt(lastUsedAt)}`,
  );
  return listOf(heading, lines, total);
}

const usedAt = (date: Date | null): string => (date ? `last used on ${minuteOf(date)} UTC` : 'never used');

function lineOf({ name, prefix, organization, lastUsedAt, expiresAt }: LivingToken): string {
  const used = usedAt(lastUsedAt);
  const end = expiresAt ? `expires on ${minuteOf(expiresAt)} UTC` : 'never expires';
  return `- '${oneLine(name)}' (${prefix}…) of ${oneLine(organization)}: ${used}, ${end}`;
}
