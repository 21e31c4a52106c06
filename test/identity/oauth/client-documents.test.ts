import type { AdapterPayload } from 'oidc-provider';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Budgets } from '../../../src/access/budgets.ts';
import { readClientDocument } from '../../../src/identity/oauth/client-document.ts';
import { ClientDocuments } from '../../../src/identity/oauth/client-documents.ts';
import type { Outbound } from '../../../src/platform/outbound/outbound.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { OutboundResponse } from '../../../src/platform/outbound/outbound-response.ts';
import { documentOf } from './document-host.ts';

const CLIENT = 'https://client.example/client.json';
/** Far above what one address may cause: these tests are about something else. */
const NOBODY = null;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-11-26T08:00:00Z') });
});
afterEach(() => {
  vi.useRealTimers();
});

const pass = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1_000);

/** Documents of a host that answers as the test says. */
function documents({ isKept = true }: { isKept?: boolean } = {}) {
  const kept = new Map<string, AdapterPayload>();
  const target = { calls: 0, answer: (): OutboundResponse => response() };
  const request = async () => {
    target.calls += 1;
    return target.answer();
  };
  const made = new ClientDocuments({
    config: { oauthClientHosts: ['*'] },
    outbound: { request } as unknown as Outbound,
    budgets: new Budgets(null),
    records: {
      find: async (id) => kept.get(id),
      upsert: async (id, payload) => void kept.set(id, JSON.parse(JSON.stringify(payload)) as AdapterPayload),
    },
    keyOf: (id) => id,
    isKept: async (id) => isKept && id === CLIENT,
  });
  /** The seconds for which the answer may be kept. */
  const get = async (clientId = CLIENT) =>
    Number(/\d+/.exec((await made.fetch(clientId, NOBODY)).headers.get('cache-control')!)![0]);
  return { made, target, get };
}

function response(headers: Record<string, string> = {}, status = 200, body = documentOf(CLIENT)): OutboundResponse {
  const all = new Headers({ 'content-type': 'application/json', ...headers });
  return new OutboundResponse({ status, headers: all, body: Buffer.from(body), url: CLIENT });
}
const failing = (code: ConstructorParameters<typeof OutboundError>[0]) => (): never => {
  throw new OutboundError(code);
};

test.each([
  ['Helper （good.example）', 'Helper good.example'],
  ['Helper ❨good.example❩', 'Helper good.example'],
  ['Helper [good.example]', 'Helper good.example'],
  ['\u200FHelper', 'Helper'],
  ['\u3164\u115F', ''],
  ['Ｈｅｌｐｅｒ', 'Helper'],
])('what it calls itself has nothing invisible, and nothing that looks like its host: %s', (name, shown) => {
  expect(readClientDocument(CLIENT, documentOf(CLIENT, { client_name: name })).name).toBe(shown);
});

describe('a document is kept', () => {
  test.each<[string, Record<string, string>, number]>([
    ['as long as its host says', { 'cache-control': 'public, max-age=3600' }, 3_600],
    ['less what it is old already', { 'cache-control': 'max-age=3600', age: '600' }, 3_000],
    ['until its host says', { expires: 'Thu, 26 Nov 2026 09:00:00 GMT' }, 3_600],
    ['ten minutes where its host says nothing', {}, 600],
    ['a minute at least', { 'cache-control': 'max-age=1' }, 60],
    ['a minute when it should not be kept', { 'cache-control': 'no-store, max-age=3600' }, 60],
    ['a minute when it has expired', { expires: 'Thu, 26 Nov 2026 07:00:00 GMT' }, 60],
    ['a day at most', { 'cache-control': 'max-age=9999999999' }, 86_400],
    ['a minute when the time is none', { expires: '0' }, 60],
  ])('%s', async (_title, headers, seconds) => {
    const { target, get } = documents();
    target.answer = () => response(headers);
    expect(await get()).toBe(seconds);
    pass(seconds - 1);
    expect([await get(), target.calls]).toEqual([1, 1]);
    pass(1);
    expect([await get(), target.calls].at(1)).toBe(2);
  });

  test('for another day while its host is silent, and no longer', async () => {
    const { target, get } = documents();
    await get();
    for (const code of ['timeout', 'network', 'tls', 'bad_response'] as const) {
      target.answer = failing(code);
      pass(600);
      expect([code, await get()]).toEqual([code, 60]);
    }
    target.answer = () => response({}, 503);
    pass(60);
    expect(await get()).toBe(60);
    // what a host says of all that it is asked is nothing about the document
    for (const status of [401, 403, 408, 425, 429]) {
      target.answer = () => response({}, status);
      pass(60);
      expect([status, await get()]).toEqual([status, 60]);
    }
    pass(86_400);
    await expect(get()).rejects.toThrow();
    expect(target.calls).toBe(12);
  });

  test('never longer than that day, also at its end', async () => {
    const { target, get } = documents();
    await get();
    target.answer = failing('timeout');
    pass(600 + 86_400 - 30);
    expect(await get()).toBe(30);
    pass(30);
    await expect(get()).rejects.toThrow();
  });

  test('ten minutes at most, and for no silent day, while no organization has the program', async () => {
    const { target, get } = documents({ isKept: false });
    target.answer = () => response({ 'cache-control': 'max-age=3600' });
    expect(await get()).toBe(600);
    target.answer = failing('timeout');
    pass(600);
    await expect(get()).rejects.toThrow();
  });

  test.each<[string, () => OutboundResponse]>([
    ['not there', () => response({}, 404)],
    ['gone', () => response({}, 410)],
    ['that leads elsewhere', () => response({ location: 'https://evil.example/' }, 302)],
    ['of another client', () => response({}, 200, documentOf('https://other.example/client.json'))],
    ['that is too large', failing('too_large')],
    ['at an address that is not called', failing('blocked_address')],
  ])('not for one that is now %s', async (_title, answer) => {
    const { target, get } = documents();
    await get();
    target.answer = answer;
    pass(600);
    await expect(get()).rejects.toThrow();
    target.answer = () => response();
    // what is wrong is kept for a minute, too
    pass(59);
    await expect(get()).rejects.toThrow();
    expect(target.calls).toBe(2);
    pass(1);
    expect(await get()).toBe(600);
  });

  test('a service that is busy has learned nothing', async () => {
    const { target, get } = documents();
    target.answer = failing('busy');
    await expect(get()).rejects.toThrow();
    target.answer = () => response();
    expect(await get()).toBe(600);
  });

  test('apart from what strangers have fetched from its host, or from all hosts', async () => {
    const { made, target, get } = documents();
    await get();
    pass(600);
    const use = async (url: string) => made.fetch(url, NOBODY).catch(() => null);
    for (let n = 0; n < 40; n++) await use(`https://client.example${n % 2 ? ':8443' : ''}/${n}.json`);
    expect(target.calls).toBe(21);
    await expect(made.fetch('https://client.example/new.json', NOBODY)).rejects.toThrow('too many');
    for (let n = 0; n < 400; n++) await use(`https://h${n}.example/client.json`);
    expect(target.calls).toBe(301);
    expect([await get(), target.calls]).toEqual([600, 302]);
  });
});
