import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import type { Config } from '../../config.ts';
import { checkMailServer } from '../../platform/mail/mail.ts';
import { dnsAnswers } from '../../platform/outbound/names.ts';
import { Storage } from '../../platform/storage/storage.ts';
import { type Check, fail, ok, warn } from './finding.ts';
import { isReadOnlyOfOthers, mayOthersRead } from './key-modes.ts';
import { redisChecks } from './redis-check.ts';

const PROBE = 'doctor';
const LOW_BYTES = 1024 ** 3;

/** What the settings say that is better said otherwise. They are valid: others would have been refused. */
const settingsCheck = ({ isProduction, publicUrl, databaseUrl, smtpUrl, corsOrigins, dataDir }: Config): Check => ({
  name: 'settings',
  remedy: 'See docs/operate/configuration.md.',
  async run() {
    const found = isProduction
      ? [
          ...(publicUrl
            ? []
            : [warn('PUBLIC_URL is not set: links in mails point to this machine.', 'Set PUBLIC_URL.')]),
          ...(databaseUrl
            ? []
            : [warn('The embedded database is for trials.', 'Set DATABASE_URL to a PostgreSQL 15 or newer.')]),
          ...(smtpUrl ? [] : [warn(`Mails are written to ${path.join(dataDir, 'mail')}.`, 'Set SMTP_URL.')]),
          ...(corsOrigins.includes('*')
            ? [
                warn(
                  'CORS_ORIGINS is *: pages of any web site may call the service.',
                  'Set CORS_ORIGINS to the origins of your front ends.',
                ),
              ]
            : []),
        ]
      : [warn('NODE_ENV is not production.', 'Set NODE_ENV=production unless this is a trial.')];
    return found.length > 0 ? found : [ok('all are valid')];
  },
});

const mailCheck = ({ smtpUrl, dataDir }: Config): Check => ({
  name: 'mail',
  remedy: 'Set SMTP_URL to a server that this machine can reach, with a user that may send mail.',
  async run() {
    if (!smtpUrl) return [ok(`SMTP_URL is not set: mails are written to ${path.join(dataDir, 'mail')}`)];
    await checkMailServer(smtpUrl);
    return [ok('the server answers and accepts the sign-in')];
  },
});

const filesCheck = (config: Config): Check => ({
  name: 'files',
  remedy: config.s3
    ? 'Check S3_BUCKET and the other S3_ settings. Their key must be allowed to put, get, list and delete.'
    : 'Make the user of the service the owner of DATA_DIR/files.',
  async run() {
    const storage = new Storage(config);
    const bytes = randomBytes(32);
    const key = `${PROBE}/${bytes.toString('hex')}`;
    try {
      await storage.put(key, Readable.from([bytes]), { limitBytes: bytes.length });
      const parts: Buffer[] = [];
      for await (const part of await storage.read(key)) parts.push(part as Buffer);
      await storage.removeFolder(PROBE);
      if (!Buffer.concat(parts).equals(bytes)) return [fail('A file was read back with different bytes.', this.remedy)];
    } finally {
      await storage.close();
    }
    return [ok(config.s3 ? `bucket ${config.s3.bucket}: written, read, deleted` : 'written, read, deleted')];
  },
});

const diskCheck = ({ dataDir }: Config): Check => ({
  name: 'disk',
  remedy: 'Set DATA_DIR to a folder that exists.',
  async run() {
    const { bavail, bsize } = await statfs(dataDir);
    const free = `${((bavail * bsize) / LOW_BYTES).toFixed(1)} GiB are free at ${dataDir}`;
    return [bavail * bsize < LOW_BYTES ? warn(`${free}.`, 'Make room.') : ok(free)];
  },
});

const dnsCheck = ({ outboundDns }: Config): Check => ({
  name: 'dns',
  remedy: 'Set OUTBOUND_DNS to servers that answer, or correct /etc/resolv.conf.',
  async run() {
    const servers = await dnsAnswers(outboundDns);
    return [ok(`${servers.join(', ')} ${servers.length > 1 ? 'answer' : 'answers'}`)];
  },
});

/** The files of `KEYS_DIR`: readable, and by nobody else. */
const keyFilesCheck = ({ keysDir, appSecret, rootKeys }: Config): Check => ({
  name: 'key files',
  remedy: `Give ${keysDir} to the user of the service, with mode 0700.`,
  async run() {
    const names = ['jwt.json', ...(appSecret ? [] : ['app.key'])].map((name) => path.join(keysDir, name));
    const missing = names.filter((file) => !existsSync(file));
    for (const file of names) if (existsSync(file)) readFileSync(file);
    const isOfOthers = existsSync(keysDir) && isReadOnlyOfOthers(keysDir);
    const open = [keysDir, ...names].filter((file) => existsSync(file) && mayOthersRead(statSync(file), isOfOthers));
    return [
      ...missing.map((file) =>
        warn(
          `${file} is not there.`,
          'Restore the file from a backup if there was one. Otherwise the service creates it when it starts.',
        ),
      ),
      ...open.map((file) => warn(`Other users may read ${file}.`, `chmod go= ${file}`)),
      ...(missing.length + open.length === 0 ? [ok(rootKeys ? `${keysDir}, ROOT_KEYS` : keysDir)] : []),
    ];
  },
});

/** What needs no database. */
export const outsideChecks = (config: Config): Check[] => [
  settingsCheck(config),
  diskCheck(config),
  filesCheck(config),
  keyFilesCheck(config),
  mailCheck(config),
  dnsCheck(config),
  ...redisChecks(config),
];
