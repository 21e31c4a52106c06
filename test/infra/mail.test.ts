import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMailer, type Mail, type Mailer } from '../../src/infra/mail.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';

const mail: Mail = {
  to: 'ada@example.com',
  subject: 'Grüße',
  text: 'Follow https://example.com/verify?token=t0k3n',
  link: 'https://example.com/verify?token=t0k3n',
};

let dataDir: string;
let server: MailServer;
let lines: string[];
let mailer: Mailer | undefined;

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'mail-'));
  server = await startMailServer();
  lines = [];
});

afterEach(async () => {
  await mailer?.close();
  await server.stop();
  await rm(dataDir, { recursive: true });
});

function open(smtpUrl: string | undefined, retryDelaysMs: number[] = [1, 1]): Mailer {
  const log = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
  mailer = createMailer({
    config: { smtpUrl, mailFrom: 'Platform <no-reply@example.com>', dataDir },
    logger: pino(log),
    retryDelaysMs,
  });
  return mailer;
}

const idle = (): Promise<void> => vi.waitFor(() => expect(mailer?.pending).toBe(0), { timeout: 10_000 });

describe('a mailer with SMTP_URL', () => {
  it('delivers subject, text and sender to the address', async () => {
    await open(server.url).send(mail);
    const received = await server.mailTo('ada@example.com');
    expect(received).toMatchObject({ subject: 'Grüße', from: { name: 'Platform', address: 'no-reply@example.com' } });
    expect(received.text?.trim()).toBe(mail.text);
  });

  it('tries again when the server is busy', async () => {
    server.refuseNext(2, 451);
    await open(server.url).send(mail);
    await server.mailTo('ada@example.com');
    expect(server.attempts).toBe(3);
  });

  it('gives up after three tries, and logs neither the text nor the link', async () => {
    server.refuseNext(3, 451);
    await open(server.url).send(mail);
    await idle();
    expect(server.attempts).toBe(3);
    expect(lines.at(-1)).toContain('a mail could not be sent and is dropped');
    expect(lines.join('')).not.toContain('t0k3n');
  });

  it('never logs the password of the mail server', async () => {
    await server.stop();
    await open(server.url.replace('//', '//user:hunter2@')).send(mail);
    await idle();
    expect(lines.join('')).toContain('ECONNREFUSED');
    expect(lines.join('')).not.toContain('hunter2');
  });

  it('does not try again what the server will never take', async () => {
    server.refuseNext(1, 550);
    await open(server.url).send(mail);
    await idle();
    expect(server.attempts).toBe(1);
  });

  it('does not let one mail turn into two by a line break in its address or subject', async () => {
    await open(server.url).send({ ...mail, subject: 'Hello\r\nBcc: eve@example.com' });
    const received = await server.mailTo('ada@example.com');
    expect(received.bcc).toBeUndefined();
    expect(server.received).toHaveLength(1);
  });

  it('sends what waits before it closes, without waiting for the pause before another try', async () => {
    server.refuseNext(1, 451);
    const closing = open(server.url, [3_600_000]);
    for (let n = 0; n < 20; n += 1) await closing.send({ ...mail, to: `user${n}@example.com` });
    await closing.close();
    expect(server.received).toHaveLength(20);
  });
});

describe('a mailer without SMTP_URL', () => {
  it('writes a file that only its user may read, and logs its name and the link', async () => {
    await open(undefined).send(mail);
    await idle();
    const dir = path.join(dataDir, 'mail');
    const [name = ''] = await readdir(dir);
    const parsed = await PostalMime.parse(await readFile(path.join(dir, name)));
    expect(parsed).toMatchObject({ subject: 'Grüße', to: [{ address: 'ada@example.com' }] });
    expect((await stat(path.join(dir, name))).mode & 0o777).toBe(0o600);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ link: mail.link, file: path.join(dir, name), to: mail.to });
  });
});
