import { expect, test } from 'vitest';
import { Removals } from '../../src/tenancy/removals.ts';
import { ownersInOrder } from '../../src/wiring/removal-order.ts';

const files = { placeRemoved: () => ({}) };
const links = { memberRemoved: async () => undefined };
const services = { files, links, clock: {} };

test('owners take part in the order that is declared', () => {
  expect(ownersInOrder(services, ['links', 'files'])).toEqual([links, files]);
});

test.each([
  ['lacks one', ['files'], 'links is missing'],
  ['has one twice', ['links', 'files', 'links'], 'links is there twice'],
  ['has one without contents', ['links', 'files', 'clock'], 'clock has no contents'],
  ['has one that is not there', ['links', 'files', 'nobody'], 'nobody has no contents'],
])('an order that %s is refused', (_what, order, message) => {
  expect(() => ownersInOrder(services, order)).toThrow(message);
});

test('nothing is removed before the owners are declared: their contents would stay behind', async () => {
  const place = { kind: 'app', id: 'app_1', orgId: 'org_1', workspaceId: 'ws_1' } as const;
  await expect(new Removals().ofPlace({} as never, place)).rejects.toThrow('not declared');
});

test('what is done before and after a place goes is done by all, in their order', async () => {
  const done: string[] = [];
  const owner = (name: string) => ({
    placeRemoved: () => ({
      before: async () => void done.push(`${name} before`),
      after: async () => void done.push(`${name} after`),
    }),
  });
  const removals = new Removals();
  removals.declare([owner('first'), links, owner('second')]);
  const place = { kind: 'namespace', id: 'ns_1', orgId: 'org_1', workspaceId: 'ws_1' } as const;
  const { before, after } = await removals.ofPlace({} as never, place);
  await before({} as never);
  await after({} as never);
  expect(done).toEqual(['first before', 'second before', 'first after', 'second after']);
});
