// own process: starts a server, which is slow from a large process
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { redisChecks } from '../../../src/commands/doctor/redis-check.ts';
import { RedisLink } from '../../../src/platform/redis/redis-link.ts';
import { reasonOf } from '../../../src/platform/redis/redis-outage.ts';
import { certificate } from '../../support/certificate.ts';
import { runCommand } from '../../support/command.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { waitUntil } from '../../support/wait.ts';

let redis: RedisServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'redis-'));
  await writeFile(path.join(folder, 'cert.pem'), certificate.cert);
  await writeFile(path.join(folder, 'key.pem'), certificate.key);
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
  await rm(folder, { recursive: true });
});

/** Longer than the process of Redis stands still on a busy machine. */
const PATIENT_MS = 2_000;

const links: RedisLink[] = [];
const link = async (url = redis.url, secret = randomBytes(32)): Promise<RedisLink> => {
  const opened = await RedisLink.open({ url, secret, logger: quietLogger, answerMs: PATIENT_MS });
  links.push(opened);
  return opened;
};
afterEach(async () => {
  redis.thaw();
  for (const one of links.splice(0)) await one.close();
});

it('gives services with different secrets different keys in one Redis, and nodes of one the same', async () => {
  const secret = randomBytes(32);
  const [a, b, other] = [await link(redis.url, secret), await link(redis.url, secret), await link()];
  expect(a.key('budget', 'x')).toBe(b.key('budget', 'x'));
  expect(a.key('budget', 'x')).not.toBe(other.key('budget', 'x'));
  expect(a.prefix('events')).not.toBe(other.prefix('events'));
});

it('does not ask a Redis again that has not answered, until it does', async () => {
  const one = await link();
  // what a link asks when it begins is answered before this
  await one.ask((client) => client.ping());
  redis.freeze();
  await expect(one.ask((client) => client.ping())).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  const ping = vi.fn(async () => 'PONG');
  await expect(one.ask(ping)).rejects.toThrow();
  expect(ping).not.toHaveBeenCalled();
  expect(one.failures).toBe(2);
  redis.thaw();
  await waitUntil(async () => (await one.state()).status === 'ok');
  expect(one.isUp).toBe(true);
});

it('takes an answer that came while the process was busy', async () => {
  const one = await link();
  const asked = one.ask((client) => client.ping());
  const until = performance.now() + PATIENT_MS + 600;
  while (performance.now() < until);
  expect(await asked).toBe('PONG');
});

it('hears what others publish, also on a connection that was made again', async () => {
  const secret = randomBytes(32);
  const [a, b] = [await link(redis.url, secret), await link(redis.url, secret)];
  const heard: string[] = [];
  b.listen('events', (text) => heard.push(text));
  const isHeard = (text: string) =>
    waitUntil(() => {
      a.publish('events', text);
      return heard.includes(text);
    });
  await isHeard('one');
  await redis.kill();
  await waitUntil(() => !b.isUp);
  await redis.start();
  await isHeard('two');
});

it('does with what a user may do who has the keys and channels of the service only', async () => {
  await redis.client.call(
    'ACL',
    'SETUSER',
    'service',
    'reset',
    'on',
    '>hidden',
    '~platform:*',
    '&platform:*',
    '+@connection',
    '+@read',
    '+@write',
    '+@scripting',
    '+@pubsub',
    '+multi',
    '+exec',
    '+time',
  );
  const one = await link(`redis://service:hidden@127.0.0.1:${redis.port}`);
  expect(await one.state()).toEqual({ status: 'ok' });
  await expect(one.ask((client) => client.set('others', '1'))).rejects.toThrow('NOPERM');
  expect(await one.ask((client) => client.set(one.key('budget', 'x'), '1', 'PX', 100))).toBe('OK');
});

it('speaks TLS, and only with a server whose certificate it knows', async () => {
  const tls = await startRedis([
    '--tls-port',
    '0',
    '--tls-cert-file',
    path.join(folder, 'cert.pem'),
    '--tls-key-file',
    path.join(folder, 'key.pem'),
    '--tls-auth-clients',
    'no',
  ]);
  try {
    await tls.client.config('SET', 'port', '0');
    await tls.client.config('SET', 'tls-port', String(tls.port));
    const url = tls.url.replace('redis:', 'rediss:');
    expect(await (await link(url)).state()).toMatchObject({ status: 'away', reason: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
    const env = {
      REDIS_URL: url,
      DATABASE_URL: 'postgresql://127.0.0.1:1/nowhere',
      DATA_DIR: folder,
      NODE_EXTRA_CA_CERTS: path.join(folder, 'cert.pem'),
    };
    expect((await runCommand('doctor', [], env)).output).toMatch(/^ok {4}redis {7}answers$/m);
  } finally {
    await tls.stop();
  }
});

it('is a line of the doctor where it is set, with the remedy where it does not answer', async () => {
  const found = (redisUrl?: string) =>
    Promise.all(redisChecks({ redisUrl, appSecret: undefined }).map((one) => one.run()));
  expect(await found()).toEqual([]);
  expect(await found(redis.url)).toEqual([[{ status: 'ok', message: 'answers', remedy: null }]]);
  const [[failed] = []] = await found('redis://:secret@127.0.0.1:1');
  expect(failed).toMatchObject({ status: 'fail', message: 'Redis does not answer (ECONNREFUSED).' });
});

it('tells of an error its code alone: the text may have what was sent', () => {
  const error = new Error("ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'secret'");
  expect(reasonOf(error)).toBe('ERR');
  expect(reasonOf(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))).toBe('ECONNREFUSED');
  expect(reasonOf(Object.assign(new Error('of the library'), { name: 'MaxRetriesPerRequestError' }))).toBe(
    'ECONNRESET',
  );
  expect(reasonOf(new TypeError('of the password'))).toBe('TypeError');
  expect(reasonOf('secret')).toBe('unknown');
});
