import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import { pino } from 'pino';
import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GiveUp } from '../../../src/kernel/tasks.ts';
import { createMailer, type Mail, type Mailer } from '../../../src/platform/mail/mail.ts';
import { type MailServer, startMailServer } from '../../support/mail-server.ts';

const mail: Mail = {
  id: '0193a5f0-0000-7000-8000-000000000001',
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
  mailer?.close();
  await server.stop();
  await rm(dataDir, { recursive: true });
});

function open(smtpUrl: string | undefined): Mailer {
  const log = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
  mailer = createMailer({
    config: { smtpUrl, mailFrom: 'Platform <no-reply@example.com>', dataDir },
    logger: pino(log),
  });
  return mailer;
}

describe('a mailer with SMTP_URL', () => {
  it('delivers subject, text and sender to the address', async () => {
    await open(server.url).send(mail);
    const received = await server.mailTo('ada@example.com');
    expect(received).toMatchObject({ subject: 'Grüße', from: { name: 'Platform', address: 'no-reply@example.com' } });
    expect(received.text?.trim()).toBe(mail.text);
  });

  it('tells mail programs how to end mails of its kind, by one click over https only (RFC 8058)', async () => {
    const mailer = open(server.url);
    const headersOf = async (unsubscribe?: string) => {
      await mailer.send({ ...mail, ...(unsubscribe ? { unsubscribe } : {}) });
      const headers = server.received.at(-1)!.headers.filter(({ key }) => key.startsWith('list-'));
      return Object.fromEntries(headers.map(({ key, value }) => [key, value]));
    };
    const link = `https://api.example.com/account/unsubscribe?token=${'a'.repeat(200)}`;
    expect(await headersOf(link)).toEqual({
      'list-unsubscribe': `<${link}>`,
      'list-unsubscribe-post': 'List-Unsubscribe=One-Click',
    });
    const plain = link.replace('https', 'http');
    expect(await headersOf(plain)).toEqual({ 'list-unsubscribe': `<${plain}>` });
    expect(await headersOf()).toEqual({});
  });

  it('names a mail by its id, so that whoever gets it twice can tell', async () => {
    const mailer = open(server.url);
    await mailer.send(mail);
    await mailer.send(mail);
    expect(server.received.map(({ messageId }) => messageId)).toEqual(Array(2).fill(`<${mail.id}@example.com>`));
  });

  it('fails when the server is busy, so that it can be tried again', async () => {
    server.refuseNext(1, 451);
    const failure = await open(server.url)
      .send(mail)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ responseCode: 451 });
    expect(failure).not.toBeInstanceOf(GiveUp);
  });

  it('says when the server will never take it', async () => {
    server.refuseNext(1, 550);
    await expect(open(server.url).send(mail)).rejects.toThrow(GiveUp);
    expect(server.attempts).toBe(1);
  });

  it('names no password of the mail server in its errors', async () => {
    await server.stop();
    const failure = await open(server.url.replace('//', '//user:hunter2@'))
      .send(mail)
      .catch((error: unknown) => error);
    expect(inspect(failure, { depth: 9 })).toContain('ECONNREFUSED');
    expect(inspect(failure, { depth: 9 })).not.toContain('hunter2');
  });

  it('does not let one mail turn into two by a line break in its address or subject', async () => {
    await open(server.url).send({ ...mail, subject: 'Hello\r\nBcc: eve@example.com' });
    const received = await server.mailTo('ada@example.com');
    expect(received.bcc).toBeUndefined();
    expect(server.received).toHaveLength(1);
  });
});

describe('a mailer without SMTP_URL', () => {
  it('writes a file that only its user may read, and logs its name and the link', async () => {
    await open(undefined).send(mail);
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
