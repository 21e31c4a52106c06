import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createTransport } from 'nodemailer';
import type { Config } from '../config.ts';
import type { Logger } from './logger.ts';

const RETRY_DELAYS_MS = [1_000, 5_000];
const MOST_WAITING = 10_000;
const CONCURRENCY = 4;
const DRAIN_TIMEOUT_MS = 10_000;
const SMTP_TIMEOUT_MS = 20_000;

/** One mail to one person. */
export interface Mail {
  to: string;
  subject: string;
  text: string;
  html?: string;
  /** The link that the mail is about: it is in the log when mails become files, so that a developer can follow it. */
  link?: string;
}

/**
 * Sends mails outside of the caller's way. Mails wait in memory and are tried three times; a stop waits for them within bounds, but a
 * killed process loses those that wait. Whoever needs a mail for sure asks for it again (verify, reset, invite all can be repeated).
 */
export interface Mailer {
  /** Resolves when the mail waits to be sent. @throws Error when too many mails wait. */
  send(mail: Mail): Promise<void>;
  /** Mails that wait or are on their way. */
  readonly pending: number;
  /** Sends what waits, for at most ten seconds; mails that wait for another try are tried at once. */
  close(): Promise<void>;
}

/** Hands one mail over, or throws. */
interface Carrier {
  deliver(mail: Mail): Promise<void>;
  close(): void;
}

/** What decides how mails go. */
export interface MailerOptions {
  config: Pick<Config, 'smtpUrl' | 'mailFrom' | 'dataDir'>;
  logger: Logger;
  /** Pauses before the second, third, … try. */
  retryDelaysMs?: readonly number[];
}

/** Mails go to `SMTP_URL`; without one they become `.eml` files in `DATA_DIR/mail`, and a log line with the link. */
export function createMailer({ config, logger, retryDelaysMs = RETRY_DELAYS_MS }: MailerOptions): Mailer {
  const carrier = config.smtpUrl
    ? smtpCarrier(config.smtpUrl, config.mailFrom)
    : fileCarrier(path.join(config.dataDir, 'mail'), config.mailFrom, logger);
  return new QueueingMailer(carrier, logger, retryDelaysMs);
}

function smtpCarrier(url: string, from: string): Carrier {
  const timeouts = {
    connectionTimeout: SMTP_TIMEOUT_MS,
    greetingTimeout: SMTP_TIMEOUT_MS,
    socketTimeout: SMTP_TIMEOUT_MS,
  };
  const transport = createTransport({ url, pool: true, maxConnections: CONCURRENCY, ...timeouts }, { from });
  return {
    deliver: async ({ to, subject, text, html }) => {
      await transport.sendMail({ to, subject, text, html });
    },
    close: () => transport.close(),
  };
}

function fileCarrier(dir: string, from: string, logger: Logger): Carrier {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'windows' }, { from });
  return {
    deliver: async ({ to, subject, text, html, link }) => {
      mkdirSync(dir, { recursive: true });
      chmodSync(dir, 0o700); // not by mkdir's mode, which would close the folders above as well
      const { message } = await transport.sendMail({ to, subject, text, html });
      const file = path.join(dir, `${new Date().toISOString().replaceAll(':', '-')}-${randomUUID().slice(0, 8)}.eml`);
      await writeFile(file, message, { mode: 0o600, flag: 'wx' });
      logger.info({ to, subject, link, file }, 'mail written to a file, because SMTP_URL is not set');
    },
    close: () => transport.close(),
  };
}

/** The server said that it will never take this mail. */
function isPermanent(error: unknown): boolean {
  const code = error instanceof Error && 'responseCode' in error ? error.responseCode : undefined;
  return typeof code === 'number' && code >= 500;
}

class QueueingMailer implements Mailer {
  private readonly carrier: Carrier;
  private readonly logger: Logger;
  private readonly retryDelaysMs: readonly number[];
  private readonly waiting: Mail[] = [];
  private readonly active = new Set<Promise<void>>();
  private readonly closing = new AbortController();

  constructor(carrier: Carrier, logger: Logger, retryDelaysMs: readonly number[]) {
    this.carrier = carrier;
    this.logger = logger;
    this.retryDelaysMs = retryDelaysMs;
  }

  get pending(): number {
    return this.waiting.length + this.active.size;
  }

  async send(mail: Mail): Promise<void> {
    if (this.waiting.length >= MOST_WAITING) throw new Error(`${MOST_WAITING} mails wait already`);
    this.waiting.push(mail);
    this.startMore();
  }

  async close(): Promise<void> {
    this.closing.abort();
    const late = new AbortController();
    await Promise.race([
      this.drain(),
      delay(DRAIN_TIMEOUT_MS, undefined, { signal: late.signal }).catch(() => undefined),
    ]); // aborted below
    late.abort();
    if (this.pending > 0) this.logger.error({ pending: this.pending }, 'mails were not sent before the stop');
    this.waiting.length = 0;
    this.carrier.close();
  }

  private async drain(): Promise<void> {
    while (this.active.size > 0) await Promise.all(this.active);
  }

  private startMore(): void {
    while (this.active.size < CONCURRENCY) {
      const mail = this.waiting.shift();
      if (!mail) return;
      const work = this.deliver(mail).finally(() => {
        this.active.delete(work);
        this.startMore();
      });
      this.active.add(work);
    }
  }

  /** Never rejects: a mail that cannot be sent is logged, without its text. */
  private async deliver(mail: Mail): Promise<void> {
    for (const retryDelayMs of [...this.retryDelaysMs, undefined]) {
      try {
        await this.carrier.deliver(mail);
        return;
      } catch (error) {
        const isLast = retryDelayMs === undefined || isPermanent(error);
        const record = { err: error, subject: mail.subject };
        if (isLast) {
          this.logger.error(record, 'a mail could not be sent and is dropped');
          return;
        }
        this.logger.warn(record, 'a mail could not be sent and is tried again');
        await delay(retryDelayMs, undefined, { signal: this.closing.signal }).catch(() => undefined); // a stop ends the pause
      }
    }
  }
}
