import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { answered, pollution } from '../support/hostile-answers.ts';
import { addRows, listRoutes } from '../support/lists.ts';
import { operations, routeOf } from '../support/operations.ts';
import { expectOk, injectable, partsOf } from '../support/requests.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
});
afterAll(() => app.close());
afterEach(() => expect(pollution()).toBeNull());

describe('cursors', () => {
  const paged = listRoutes.filter(({ isPaged }) => isPaged);

  async function cursorOf(list: (typeof paged)[number], query: Record<string, string> = {}): Promise<string> {
    const parts = partsOf(list.operation, world, { token: world.accounts.owner.accessToken });
    const body = await expectOk<{ next_cursor: string }>(
      app,
      injectable(list.operation, { ...parts, query: { ...parts.query, limit: '1', ...query } }),
    );
    return body.next_cursor;
  }

  /** A cursor of each list, by its route. */
  const cursors = new Map<string, string>();
  beforeAll(async () => {
    for (const list of paged) await addRows(app, world, list, 4);
    for (const list of paged) cursors.set(routeOf(list.operation), await cursorOf(list));
  });

  test.each(paged.map((list) => [routeOf(list.operation), list] as const))(
    '%s: a cursor that was tampered with, or made for another list, is invalid',
    async (route, list) => {
      const good = cursors.get(route)!;
      expect(good).toMatch(/^[\w-]+$/);
      const bytes = Buffer.from(good, 'base64url');
      const flipped = [0, 5, Math.floor(bytes.length / 2), bytes.length - 13, bytes.length - 1].map((at) => {
        const copy = Buffer.from(bytes);
        copy[at]! ^= 1;
        return copy.toString('base64url');
      });
      const foreign = [...cursors].flatMap(([other, cursor]) => (other === route ? [] : [cursor]));
      const misspelt = [
        good.slice(0, -1),
        good.slice(1),
        `${good}A`,
        `${good}=`,
        `${good} `,
        ` ${good}`,
        good.toUpperCase(),
        'e30',
        Buffer.from('{}').toString('base64'),
        'x',
        '\0',
        'A'.repeat(10_240),
        'null',
      ];
      const bad = [flipped, foreign, misspelt].flatMap((cursors, kind) => thinned(cursors, `${route} ${kind}`));
      for (const cursor of bad.filter((text) => text !== good)) {
        const parts = partsOf(list.operation, world, { token: world.accounts.owner.accessToken });
        const answer = await answered(app, injectable(list.operation, { ...parts, query: { ...parts.query, cursor } }));
        expect(answer.statusCode, `${cursor.slice(0, 60)}: ${answer.body.slice(0, 300)}`).toBe(422);
        expect(answer.json<{ detail: { loc: unknown }[] }>().detail[0]!.loc).toEqual(['query', 'cursor']);
      }
    },
  );

  test('a cursor of one tenant is invalid for another, one of a filter for another filter', async () => {
    const other = await createWorld(app, { withResources: false });
    const list = paged.find(({ operation }) => operation.path === '/v1/orgs/{org_id}/workspaces')!;
    await addRows(app, world, list, 2);
    const cursor = await cursorOf(list);
    const parts = partsOf(list.operation, other, { token: other.accounts.owner.accessToken });
    expect((await answered(app, injectable(list.operation, { ...parts, query: { cursor } }))).statusCode).toBe(422);
    const users = paged.find(({ operation }) => operation.path === '/v1/users')!;
    await addRows(app, world, users, 3);
    const filtered = await cursorOf(users, { search: world.marker });
    const unfiltered = partsOf(users.operation, world, { token: world.accounts.owner.accessToken });
    expect(
      (
        await answered(
          app,
          injectable(users.operation, { ...unfiltered, query: { ...unfiltered.query, cursor: filtered } }),
        )
      ).statusCode,
    ).toBe(422);
  });
});
describe('limit', () => {
  const limited = operations.flatMap((operation) => {
    const limit = operation.parameters.find(({ name }) => name === 'limit');
    return limit ? [[routeOf(operation), operation, limit.constraints] as const] : [];
  });
  test.each(limited)('%s takes its bounds and nothing around them', async (title, operation, { min, max }) => {
    const ask = async (limit: string) => {
      const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken });
      return (await answered(app, injectable(operation, { ...parts, query: { ...parts.query, limit } }))).statusCode;
    };
    for (const good of [min, max]) expect(await ask(String(good))).toBe(200);
    const others = [-1, '', ' 5', '5 ', '0x10', '5e1', '5.0', '1.5', '٥', 'NaN', '2147483648', '9'.repeat(30)];
    for (const bad of [min! - 1, max! + 1, ...thinned(others, `limit ${title}`)])
      expect(await ask(String(bad)), String(bad)).toBe(422);
  });
});
