import { expect, test, vi } from 'vitest';
import type { Access } from '../../../src/access/access.ts';
import type { Changes } from '../../../src/data/changes.ts';
import type { Sql } from '../../../src/data/sql.ts';
import type { Audience } from '../../../src/live/events/audience.ts';
import { excerptOf, MAX_TRIES, retryAfterOf, waitAfter } from '../../../src/live/sending/attempts.ts';
import type { Disabling } from '../../../src/live/sending/disabling.ts';
import { SendEngine } from '../../../src/live/sending/send-engine.ts';
import type { SendQueue } from '../../../src/live/sending/send-queue.ts';
import { SendSlots, type SlotOwner } from '../../../src/live/sending/send-slots.ts';
import { type WebhookMessage, webhookChannel } from '../../../src/live/webhooks/webhook-channel.ts';
import { WebhookFanOut } from '../../../src/live/webhooks/webhook-fan-out.ts';
import type { WebhookSender } from '../../../src/live/webhooks/webhook-sender.ts';
import { OutboundResponse } from '../../../src/platform/outbound/outbound-response.ts';
import { stopAges } from '../../support/passing-time.ts';
import { waitFor } from '../../support/wait.ts';

const answer = (text: string) =>
  new OutboundResponse({ status: 200, headers: new Headers(), body: Buffer.from(text), url: 'https://a.example/' });

test('an excerpt has no secret, not even one that its end cuts, and nothing that a column cannot hold', () => {
  const secret = 'a-secret-value';
  expect(excerptOf(answer(`${secret} and ${secret}`), [secret])).toBe('[redacted] and [redacted]');
  const cut = excerptOf(answer('x'.repeat(1_020) + secret), [secret]);
  expect(cut).toBe(`${'x'.repeat(1_020)}[red`);
  // of two, one in the other
  expect(excerptOf(answer('abcdef'), ['abc', 'abcdef'])).toBe('[redacted]');
  // without its scheme, and as an address or JSON spells it
  const token = 'Bearer a+b/c="d"';
  const spelled = ['a+b/c="d"', encodeURIComponent('a+b/c="d"'), JSON.stringify(token), 'a%2bb%2fc%3d%22d%22'];
  expect(excerptOf(answer(spelled.join(' and ')), [token])).toBe(
    '[redacted] and [redacted] and "[redacted]" and [redacted]',
  );
  expect(excerptOf(answer('a\u0000b\u001b[31m\nc\ud83d'), [''])).toBe('a\uFFFDb\uFFFD[31m\nc\uFFFD');
  expect(excerptOf(answer('é'.repeat(5_000)), [])).toBe('é'.repeat(1_024));
});

test('honours Retry-After, up to six hours', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  const of = (header: string | null) => retryAfterOf(header, now);
  expect([of(null), of(''), of('soon'), of('-1'), of('1e3')]).toEqual([null, null, null, null, null]);
  expect([of('0'), of('90'), of('999999999')]).toEqual([0, 90, 21_600]);
  expect([of('Thu, 01 Jan 2026 00:01:00 GMT'), of('Wed, 31 Dec 2025 00:00:00 GMT')]).toEqual([60, 0]);
});

test('eight tries in a day, none of them later', () => {
  const queuedAt = new Date('2026-01-01T00:00:00Z');
  let now = queuedAt.getTime();
  const waits: (number | null)[] = [];
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const wait = waitAfter({ tries, maxTries: MAX_TRIES, queuedAt }, null, now);
    waits.push(wait);
    now += (wait ?? 0) * 1_000;
  }
  expect(waits).toEqual([5, 300, 1_800, 7_200, 18_000, 21_600, 36_000, null]);
  expect(now - queuedAt.getTime()).toBeLessThan(86_400_000);
  const first = { tries: 0, maxTries: MAX_TRIES, queuedAt };
  expect(waitAfter(first, 60, queuedAt.getTime())).toBe(60);
  // what waited for its turn keeps its first tries, and is over then
  const late = (tries: number, ms: number, asked: number | null = null) =>
    waitAfter({ ...first, tries }, asked, queuedAt.getTime() + ms);
  expect([0, 1, 2, 3].map((tries) => late(tries, 86_400_000))).toEqual([5, 300, 1_800, null]);
  expect([late(0, 80_000_000, 21_600), late(3, 80_000_000, 21_600)]).toEqual([21_600, 6_400]);
  expect(waitAfter({ ...first, maxTries: 1 }, null, queuedAt.getTime())).toBeNull();
});

test('slow receivers have half of the room, an organization a third, and who waits has the next turn', () => {
  const slots = new SendSlots();
  const stepped: string[] = [];
  const owner = (orgId: string, isSlow = false): SlotOwner => ({
    orgId,
    isSlow,
    isFailing: false,
    step: () => stepped.push(orgId),
  });
  const releases = [];
  for (let n = 0; n < 60; n++) releases.push(slots.take(owner(`slow ${n}`, true)));
  expect(releases.filter(Boolean)).toHaveLength(48);
  const own = [];
  for (let n = 0; n < 40; n++) own.push(slots.take(owner('one')));
  expect(own.filter(Boolean)).toHaveLength(32);
  expect(slots.take(owner('other'))).not.toBeNull();
  stepped.length = 0;
  releases[0]!();
  // the first that waited, and all that may have found room: each tries once
  expect(stepped.slice(0, 2)).toEqual(['slow 48', 'slow 49']);
});

test('a backlog has a few batches at a time', async () => {
  const read = vi.fn(async (text: string) =>
    text.includes('from webhooks h left')
      ? [
          {
            id: 'one',
            orgId: 'a',
            workspaceId: null,
            eventTypes: [],
            isActive: true,
            xid: '1',
            seq: '1',
            begunSnapshot: null,
            begunXid: null,
          },
        ]
      : Array(500).fill({ type: 'thread.created', recipientId: null, xid: '2', seq: '1' }),
  );
  const run = vi.fn(async () => 0);
  const fanOut = new WebhookFanOut({
    sql: { read } as unknown as Sql,
    changes: { run } as unknown as Changes,
    access: { requireOrganization: async () => undefined } as unknown as Access,
    audience: {} as Audience,
    disabling: {} as Disabling,
  });
  await fanOut.run('one', () => false);
  expect(run).toHaveBeenCalledTimes(4);
  await fanOut.run('one', () => true);
  expect(run).toHaveBeenCalledTimes(4);
});

/** An engine over what its looks find. */
const engineOver = (read: () => Promise<object[]>, run: (id: string) => Promise<number>) =>
  new SendEngine({
    channel: webhookChannel,
    slots: new SendSlots(),
    sql: { read } as unknown as Sql,
    fanOut: { run } as unknown as WebhookFanOut,
    queue: { renew: async () => undefined } as unknown as SendQueue<WebhookMessage>,
    sender: { forget: () => undefined } as unknown as WebhookSender,
    leaseSeconds: 20,
    onFault: (error) => expect(error).toBeUndefined(),
  });
const workOf = (...ids: string[]) =>
  ids.map((id) => ({ id, orgId: id[0], hasNew: true, hasDue: false, hasReceivers: true }));

test('deliveries are made for two webhooks of an organization at once, which leaves room for others', async () => {
  const begun: string[] = [];
  let end: () => void = () => undefined;
  const ended = new Promise<number>((resolve) => {
    end = () => resolve(0);
  });
  const work = workOf('a 1', 'a 2', 'a 3', 'a 4', 'a 5', 'b 1');
  const engine = engineOver(
    async () => work,
    (id) => {
      begun.push(id);
      return ended;
    },
  );
  engine.wake();
  await waitFor(() => expect(begun).toEqual(['a 1', 'a 2', 'b 1']));
  end();
  await engine.stop();
});

test('a look that took long keeps what is due waiting for seconds, not for minutes', async () => {
  const ages = stopAges();
  const begun: string[] = [];
  let looks = 0;
  const engine = engineOver(
    async () => {
      looks += 1;
      // the database was away
      if (looks === 1) ages.pass(30_000);
      return workOf(`look ${looks}`);
    },
    async (id) => {
      begun.push(id);
      return 0;
    },
  );
  engine.wake();
  await waitFor(() => expect(begun).toEqual(['look 1']));
  engine.wake();
  await waitFor(() => expect(begun).toEqual(['look 1', 'look 2']));
  await engine.stop();
});
