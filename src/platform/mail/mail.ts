import { chmodSync, mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createTransport } from 'nodemailer';
import type { Config } from '../../config.ts';
import { GiveUp } from '../../kernel/tasks.ts';
import type { Logger } from '../logger.ts';

const CONNECTIONS = 4;
const SMTP_TIMEOUT_MS = 20_000;
const CHECK_TIMEOUT_MS = 5_000;

/** One mail to one person. */
export interface Mail {
  /**
   * Part of its `Message-ID`, so that a duplicate can be recognised, sent because a node died after the mail was
   * accepted.
   */
  id: string;
  to: string;
  subject: string;
  text: string;
  html?: string;
  /** The link in the mail. It is logged when mails become files, so that a developer can follow it. */
  link?: string;
  /** The address that ends mails of its kind, also by one click of a mail program (RFC 8058). */
  unsubscribe?: string;
}

/** Sends mails: to a mail server, or into files. */
export interface Mailer {
  /**
   * Resolves when the mail was accepted.
   * @throws GiveUp when it will never be accepted, any other Error when it may be later
   */
  send(mail: Mail): Promise<void>;
  close(): void;
}

/** The options of the mailer. */
export interface MailerOptions {
  config: Pick<Config, 'smtpUrl' | 'mailFrom' | 'dataDir'>;
  logger: Logger;
}

/** Sends mails to `SMTP_URL`. Without it, they become `.eml` files in `DATA_DIR/mail`, and the link is logged. */
export function createMailer({ config: { smtpUrl, mailFrom, dataDir }, logger }: MailerOptions): Mailer {
  return smtpUrl ? smtpMailer(smtpUrl, mailFrom) : fileMailer(path.join(dataDir, 'mail'), mailFrom, logger);
}

function smtpMailer(url: string, from: string): Mailer {
  const timeouts = {
    connectionTimeout: SMTP_TIMEOUT_MS,
    greetingTimeout: SMTP_TIMEOUT_MS,
    socketTimeout: SMTP_TIMEOUT_MS,
  };
  const transport = createTransport({ url, pool: true, maxConnections: CONNECTIONS, ...timeouts }, { from });
  return {
    send: async (mail) => {
      await transport.sendMail(messageOf(mail, from)).catch((error: unknown) => {
        throw isPermanent(error) ? new GiveUp(error) : error;
      });
    },
    close: () => transport.close(),
  };
}

/**
 * Connects to the mail server, greets it and signs in, and sends nothing.
 * @throws Error with what it answered
 */
export async function checkMailServer(url: string): Promise<void> {
  const transport = createTransport({ url, connectionTimeout: CHECK_TIMEOUT_MS, greetingTimeout: CHECK_TIMEOUT_MS });
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}

function fileMailer(dir: string, from: string, logger: Logger): Mailer {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'windows' }, { from });
  return {
    send: async (mail) => {
      mkdirSync(dir, { recursive: true });
      chmodSync(dir, 0o700); // not by mkdir's mode, which would close the folders above as well
      const { message } = await transport.sendMail(messageOf(mail, from));
      const file = path.join(dir, `${new Date().toISOString().replaceAll(':', '-')}-${mail.id.slice(0, 8)}.eml`);
      await writeFile(file, message, { mode: 0o600, flag: 'wx' });
      const { to, subject, link } = mail;
      logger.info({ to, subject, link, file }, 'mail written to a file, because SMTP_URL is not set');
    },
    close: () => transport.close(),
  };
}

function messageOf({ id, to, subject, text, html, unsubscribe }: Mail, from: string) {
  const domain = /@([^\s>]+)/.exec(from)?.[1] ?? 'localhost';
  return {
    messageId: `<${id}@${domain}>`,
    to,
    subject,
    text,
    ...(html === undefined ? {} : { html }),
    ...(unsubscribe === undefined ? {} : { headers: unsubscribingBy(unsubscribe) }),
  };
}

/** RFC 8058 wants https for one click; by other addresses a mail program opens the page. */
const unsubscribingBy = (address: string) => ({
  'List-Unsubscribe': { prepared: true, value: `<${address}>` },
  ...(address.startsWith('https:') ? { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' } : {}),
});

/** Whether the server will never accept this mail. */
function isPermanent(error: unknown): boolean {
  const code = error instanceof Error && 'responseCode' in error ? error.responseCode : undefined;
  return typeof code === 'number' && code >= 500;
}
