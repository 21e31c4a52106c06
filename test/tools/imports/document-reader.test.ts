import { expect, onTestFinished, test } from 'vitest';
import { Budget } from '../../../src/access/throttle.ts';
import type { Caller } from '../../../src/kernel/caller.ts';
import type { Outbound, OutboundRequest } from '../../../src/platform/outbound/outbound.ts';
import { DocumentReader } from '../../../src/tools/imports/document-reader.ts';
import { waitFor } from '../../support/wait.ts';

/** A reader whose documents come when the test says so. No document is read: what is wanted of it is refused. */
function lab(documents = 1_000) {
  const open: (() => void)[] = [];
  const asked: OutboundRequest[] = [];
  const outbound = {
    request: async (request: OutboundRequest) => {
      asked.push(request);
      await new Promise<void>((resolve) => open.push(resolve));
      return { isOk: true, text: () => '{}' };
    },
  };
  const reader = new DocumentReader(outbound as unknown as Outbound, new Budget(documents, 60));
  onTestFinished(() => reader.close());
  const read = (orgId: string, source: object, left?: AbortSignal) => {
    const request = { traceId: 't', ...(left && { left: () => left }) };
    const caller = { principal: { userId: 'ann' }, request } as unknown as Caller;
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
  const leaving = read('org-0', source, left.signal);
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
