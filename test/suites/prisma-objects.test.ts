import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tables } from '../../src/generated/tables.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { readsIn } from '../support/reads.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** `model_entitlements` -> `ModelEntitlement` */
const typeOf = (table: string) =>
  schema.getType(table.replace(/s$/, '').replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase()));

test('a type is a prismaObject where its row is one of the Prisma schema, and only there (docs/decisions/0011)', () => {
  const columnsOf: Readonly<Record<string, { columns: Readonly<Record<string, string>> }>> = tables;
  const said = [...readsIn(app.services).values()].flatMap(({ sources: { anywhere } }) => {
    const [table, ...more] = anywhere.from.split(' ');
    const all = Object.entries(columnsOf[table!]!.columns).map(([name, column]) => [name, `t.${column}`]);
    const isWhole = isDeepStrictEqual(anywhere.columns, Object.fromEntries(all));
    const model = typeOf(table!)?.extensions.pothosPrismaModel;
    // a join may lead to the rows of another table; what it selects of its own is seen in the resource's other reads
    return more.length > 1 ? [] : [{ table, isWhole, isPrismaObject: model !== undefined }];
  });
  expect(said.filter(({ isWhole }) => isWhole).length).toBeGreaterThan(5);
  expect(said.filter(({ isWhole }) => !isWhole).length).toBeGreaterThan(3);
  expect(said.filter(({ isWhole, isPrismaObject }) => isWhole !== isPrismaObject)).toEqual([]);
});
