import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { addRows, itemIdsOf, type ListRoute, listRoutes } from '../support/lists.ts';
import { routeOf } from '../support/operations.ts';
import { expectOk, injectable, partsOf } from '../support/requests.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

interface Envelope {
  total: number;
  has_more: boolean;
  next_cursor: string | null;
}

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
});
afterAll(() => app.close());

async function pageOf({ operation, array }: ListRoute, query: Record<string, string>) {
  const parts = partsOf(operation, world, { token: world.accounts.owner.accessToken });
  const body = await expectOk<Envelope & Record<string, unknown>>(
    app,
    injectable(operation, { ...parts, query: { ...parts.query, ...query } }),
  );
  return { ...body, items: body[array] as Record<string, unknown>[] } as Envelope & {
    items: Record<string, unknown>[];
  };
}

/** The largest page of a list. */
const mostOf = ({ operation }: ListRoute) =>
  String(operation.parameters.find(({ name }) => name === 'limit')?.constraints.max ?? 200);

const paged = listRoutes.filter(({ isPaged }) => isPaged).map((list) => [routeOf(list.operation), list] as const);

test('lists are found', () => expect(paged.length).toBeGreaterThan(1));

test.each(paged)(
  '%s: page size 1 over rows of one transaction, with deletions in between: nothing twice, nothing lost',
  async (_title, list) => {
    const atFirst = await pageOf(list, { limit: '1' });
    const { table, rowIds, itemIds } = await addRows(app, world, list, 30);
    const among = new Set(itemIds);
    const first = await pageOf(list, { limit: '1' });
    expect(first.total).toBe(atFirst.total + 30);
    const whole = await pageOf(list, { limit: mostOf(list) });
    expect(whole.items).toHaveLength(first.total);
    expect(whole).toMatchObject({ has_more: false, next_cursor: null });

    const seen: string[] = [];
    const removed = new Set<string>();
    const remove = async (item: string | undefined) => {
      if (item === undefined) return;
      await app.database.pool.query(`delete from ${table} where id = $1`, [rowIds[itemIds.indexOf(item)]]);
      removed.add(item);
    };
    let page = first;
    let pages = 1;
    for (;;) {
      expect(page.items).toHaveLength(1);
      expect(page.has_more).toBe(page.next_cursor !== null);
      seen.push(...itemIdsOf(page.items, among));
      // behind the cursor, the very row that it names, and in front of it
      if (pages % 5 === 0) {
        await remove(seen.find((item) => !removed.has(item)));
        await remove(removed.has(seen.at(-1) ?? '') ? undefined : seen.at(-1));
        await remove(itemIds.find((item) => !seen.includes(item) && !removed.has(item)));
      }
      if (page.next_cursor === null) break;
      page = await pageOf(list, { limit: '1', cursor: page.next_cursor });
      // the row in front was the only one left
      if (page.items.length === 0) break;
      pages++;
      expect(pages).toBeLessThanOrEqual(whole.total);
    }
    expect(removed.size).toBeGreaterThan(6);
    expect(seen).toHaveLength(new Set(seen).size);
    expect(itemIds.filter((item) => !seen.includes(item) && !removed.has(item))).toEqual([]);
    const left = await pageOf(list, { limit: mostOf(list) });
    expect(left.total).toBe(whole.total - removed.size);
    expect(left.items).toHaveLength(left.total);
  },
);

test.each(paged)('%s: pages of every size give the same rows in the same order', async (title, list) => {
  await addRows(app, world, list, 6);
  const whole = await pageOf(list, { limit: mostOf(list) });
  for (const limit of thinned(['2', '7'], title)) {
    const items: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await pageOf(list, cursor === '' ? { limit } : { limit, cursor });
      items.push(...page.items);
      cursor = page.next_cursor;
      expect(items.length).toBeLessThanOrEqual(whole.total);
    }
    expect(items).toEqual(whole.items);
  }
});
