import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { hostileBodies } from '../support/hostile.ts';
import { faultOf, faultsOf, pollution } from '../support/hostile-answers.ts';
import { gentlestFirst, routeOf } from '../support/operations.ts';
import { injectable, partsOf } from '../support/requests.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
/** Loses its workspace, its people and its session to the requests that are valid but for their oddness. */
let doomed: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
  doomed = await createWorld(app);
});
afterAll(() => app.close());
afterEach(() => expect(pollution()).toBeNull());

// streams of events would stay open: they are tried with what does not start one
const ordered = gentlestFirst().filter(({ type }) => type !== 'subscription');

describe('never a 5xx, never a hang, always one of the two shapes', () => {
  test.each(ordered.map((operation) => [routeOf(operation), operation] as const))('%s', async (_title, operation) => {
    const valid = () => partsOf(operation, doomed, { token: doomed.accounts.owner.accessToken, requiredOnly: false });
    expect(await faultsOf(app, hostileBodies(operation, valid))).toEqual([]);
  });
});

const randomSeed = Math.floor(Math.random() * 2 ** 31);

test.each([
  [42, 250],
  [randomSeed, 150],
])('random requests (seed %i, %i runs) are answered in good form', async (seed, numRuns) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.string({ maxLength: 20 }),
    fc.constantFrom('', '\0', '__proto__', '-1', '1e9', ...Object.values(world.ids)),
  );
  const name = fc.oneof(
    fc.constantFrom('limit', 'cursor', 'search', 'workspace_id', 'name', 'tags', 'email'),
    fc.string({ maxLength: 10 }),
  );
  const arbitrary = fc.record({
    operation: fc.constantFrom(
      ...ordered.filter(({ path }) => !path.endsWith('/logout') && path !== '/v1/orgs/{org_id}'),
    ),
    params: fc.dictionary(name, text, { maxKeys: 2 }),
    swap: fc.option(text),
    query: fc.dictionary(name, text, { maxKeys: 4 }),
    body: fc.oneof(
      { weight: 3, arbitrary: fc.dictionary(name, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 }) },
      { weight: 1, arbitrary: fc.jsonValue() },
    ),
    merged: fc.boolean(),
    isMember: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ operation, swap, query, body, merged, isMember }) => {
      const parts = partsOf(operation, world, { token: world.accounts[isMember ? 'editor' : 'owner'].accessToken });
      const [first] = Object.keys(parts.params).slice(-1);
      if (swap !== null && first) parts.params[first] = swap;
      const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
      const sent = operation.body ? (merged && isObject ? { ...(parts.body as object), ...body } : body) : undefined;
      const wellFormed = (value: string) => value.toWellFormed();
      parts.params = Object.fromEntries(Object.entries(parts.params).map(([key, value]) => [key, wellFormed(value)]));
      const request = injectable(operation, { ...parts, query: { ...parts.query, ...query }, body: sent });
      expect(await faultOf(app, request)).toBeNull();
    }),
    { seed, numRuns, endOnFailure: true },
  );
});
