import { type Account, call, register } from '../api.ts';
import { compare, load, median, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import { seedWorkspaces } from '../seed.ts';
import type { ServerProcess } from '../server-process.ts';

/** Workspaces of the account that is measured. */
export const SMALL = 10_000;

const listOf = ({ orgId }: Account) => `/v1/orgs/${orgId}/workspaces`;

/** A list of 50 and a read by id. Leaves 10,000 workspaces in the account's organization. */
export async function workspaces(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  databaseUrl: string,
  rounds: Rounds,
): Promise<void> {
  await seedWorkspaces(databaseUrl, account, SMALL);
  const list = listOf(account);
  print('list of 50 workspaces', await compare(servers, list, account.token, rounds));
  print(
    'get one workspace',
    await compare(servers, `${list}/${await newest(product, account)}`, account.token, rounds),
  );
}

/** The id of the newest workspace. */
export async function newest(product: ServerProcess, account: Account): Promise<string> {
  const page = await call<{ workspaces: { workspace_id: string }[] }>(product, account.token, 'GET', listOf(account));
  return page.workspaces[0]!.workspace_id;
}

/** The cost of the first page and of a middle page, with 10,000 and with many rows in one tenant. */
export async function growth(
  product: ServerProcess,
  account: Account,
  databaseUrl: string,
  large: number,
  { count, seconds }: Rounds,
): Promise<void> {
  const big = await register(product);
  await seedWorkspaces(databaseUrl, big, large);
  const cases = [
    { name: 'first page', small: listOf(account), big: listOf(big) },
    {
      name: 'middle page',
      small: await middleOf(product, account, SMALL),
      big: await middleOf(product, big, large),
    },
  ];
  console.log(`\ngrowth: a page of 50 with its total at ${SMALL} and at ${large} rows in one tenant`);
  for (const { name, small, big: path } of cases) {
    const ratios: number[] = [];
    for (let round = 0; round <= count; round++) {
      const a = await load(product, small, account.token, seconds);
      const b = await load(product, path, big.token, seconds);
      if (round > 0) ratios.push(a.rps / b.rps);
    }
    console.log(
      `  ${name}: a page of the large tenant costs ${median(ratios).toFixed(2)} ` +
        `(${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}) times one of the small tenant`,
    );
  }
}

/** The list's URL with the cursor of its middle, reached in pages of 200. */
async function middleOf(product: ServerProcess, account: Account, count: number): Promise<string> {
  const list = listOf(account);
  let cursor: string | null = null;
  for (let seen = 0; seen < count / 2; seen += 200) {
    const query: string = cursor ? `?limit=200&cursor=${cursor}` : '?limit=200';
    const page = await call<{ next_cursor: string }>(product, account.token, 'GET', list + query);
    cursor = page.next_cursor;
  }
  return `${list}?cursor=${cursor}`;
}
