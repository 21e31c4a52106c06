import { expect, onTestFinished, test } from 'vitest';
import { Budget } from '../../../src/access/throttle.ts';
import type { Caller } from '../../../src/kernel/caller.ts';
import type { Outbound, OutboundRequest } from '../../../src/platform/outbound/outbound.ts';
import { OutboundError } from '../../../src/platform/outbound/outbound-error.ts';
import { DocumentReader } from '../../../src/tools/imports/document-reader.ts';
import { waitFor } from '../../support/wait.ts';

interface Reading {
  left?: AbortSignal;
  by?: string;
}

/** A reader whose documents come when the test says so. No document is read: what is wanted of it is refused. */
function lab(documents = 1_000) {
  const open: ((error?: Error) => void)[] = [];
  const asked: OutboundRequest[] = [];
  const outbound = {
    request: async (request: OutboundRequest) => {
      asked.push(request);
      await new Promise<void>((resolve, reject) =>
        open.push((error) => {
          if (error) reject(error);
          else resolve();
        }),
      );
      return { isOk: true, text: () => '{}' };
    },
  };
  const reader = new DocumentReader(outbound as unknown as Outbound, new Budget(documents, 60));
  onTestFinished(() => reader.close());
  /** By a user of each organization, unless another is said. */
  const read = (orgId: string, source: object, { left, by = `user-of-${orgId}` }: Reading = {}) => {
    const request = { traceId: 't', ...(left && { left: () => left }) };
    const caller = { principal: { userId: by }, request } as unknown as Caller;
    return reader
      .read(caller, orgId, source, () => {
        throw new Error('refused');
      })
      .then(String, (error: { code?: string; message: string }) => error.code ?? error.message);
  };
  return { asked, open, read };
}
const source = { url: 'https://docs.example.com/openapi' };

test('documents are fetched in turn, few wait, and whoever leaves does not', async () => {
  const { asked, open, read } = lab();
  const left = new AbortController();
  const first = read('org-0', source);
  const leaving = read('org-0', source, { left: left.signal });
  const second = read('org-0', { document: '{}' });
  await waitFor(() => expect(open).toHaveLength(1));
  left.abort(new Error('has left'));
  expect(await leaving).toBe('has left');
  open.pop()!();
  expect([await first, await second]).toEqual(['refused', 'refused']);
  expect(asked).toHaveLength(1);

  const running = Array.from({ length: 8 }, (_, org) => read(`org-${org}`, source));
  await waitFor(() => expect(open).toHaveLength(8));
  const waiting = Array.from({ length: 16 }, (_, at) => read(`other-${at}`, { document: '{}' }));
  expect(await read('org-9', source)).toBe('SERVICE_UNAVAILABLE');
  expect(asked).toHaveLength(9);
  for (const end of open) end();
  expect(new Set(await Promise.all([...running, ...waiting]))).toEqual(new Set(['refused']));
});

test('texts count as documents of the user, too', async () => {
  const { read } = lab(2);
  for (const end of ['refused', 'refused', 'RATE_LIMIT_EXCEEDED'])
    expect(await read('org', { document: '{}' })).toBe(end);
});

test('nobody with many organizations holds up the others, and no organization waits with many', async () => {
  const { asked, open, read } = lab();
  const theirs = Array.from({ length: 24 }, (_, at) => read(`org-${at % 8}`, source, { by: 'eve' }));
  await waitFor(() => expect(open).toHaveLength(2));
  // two run and four wait; the others were told so
  const refused = await Promise.all(theirs.slice(6));
  expect(new Set(refused)).toEqual(new Set(['SERVICE_UNAVAILABLE']));
  const ours = [1, 2, 3].map((at) => read('ours', source, { by: `one-${at}` }));
  expect(await read('ours', source, { by: 'one-4' })).toBe('SERVICE_UNAVAILABLE');
  await waitFor(() => expect(open).toHaveLength(3));
  expect(asked.map(({ owner }) => owner)).toEqual(['org-0', 'org-1', 'ours']);
  let ended = 0;
  while (ended < 9) {
    await waitFor(() => expect(open.length).toBeGreaterThan(ended));
    open[ended++]!();
  }
  expect(new Set(await Promise.all([...ours, ...theirs.slice(0, 6)]))).toEqual(new Set(['refused']));
});

test('whose last document took too long comes last, and makes room for others', async () => {
  const { asked, open, read } = lab();
  const slow = ['slow-1', 'slow-2', 'slow-3'];
  const first = slow.map((org) => read(org, source));
  await waitFor(() => expect(open).toHaveLength(3));
  for (const end of open) end(new OutboundError('timeout'));
  await Promise.all(first);
  const again = slow.map((org) => read(org, source));
  // of these, one at a time
  await waitFor(() => expect(open).toHaveLength(4));
  const running = Array.from({ length: 7 }, (_, at) => read(`org-${at}`, source));
  await waitFor(() => expect(open).toHaveLength(11));
  const waiting = Array.from({ length: 14 }, (_, at) => read(`other-${at}`, source));
  expect(await read('slow-1', source, { by: 'a-colleague' })).toBe('SERVICE_UNAVAILABLE');
  const late = read('late', source);
  expect(await again[2]).toBe('SERVICE_UNAVAILABLE');
  for (let ended = 3; ended < 27; ended++) {
    await waitFor(() => expect(open.length).toBeGreaterThan(ended));
    open[ended]!();
  }
  const all = [...again.slice(0, 2), ...running, ...waiting, late];
  expect(new Set(await Promise.all(all))).toEqual(new Set(['refused']));
  expect(asked.at(-1)!.owner).toBe('slow-2');
});
