import { type Account, call } from '../api.ts';
import { compare, type Question, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';

/** Number of workspaces renamed in turn: writers of a single one would wait for one another at its row. */
const RENAMED = 64;
const CONNECTIONS = 16;

/**
 * Changes, each compared with a hand-written transaction of the same rows. `BENCH_ONLY=writes npm run bench` runs these
 * alone.
 */
export async function writes(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  rounds: Rounds,
): Promise<void> {
  const workspaces = `/v1/orgs/${account.orgId}/workspaces`;
  const make = { organization_id: account.orgId, name: 'Made to be measured', description: 'Of a usual length.' };
  const paths: string[] = [];
  for (let n = 0; n < RENAMED; n++) {
    const { workspace_id } = await call<{ workspace_id: string }>(product, account.token, 'POST', workspaces, make);
    paths.push(`${workspaces}/${workspace_id}`);
  }
  let n = 0;
  const secretOf = () => ({
    name: `made-${Date.now().toString(36)}-${n++}`,
    secret_type: 'basic_auth',
    value: { username: 'bench', password: 'made to be measured' },
  });
  const rename = () => ({ name: `Renamed ${n++}` });
  const cases: [title: string, questions: Question[]][] = [
    ['create a workspace', [{ method: 'POST', path: workspaces, body: () => make }]],
    ['update a workspace', paths.map((path) => ({ method: 'PUT', path, body: rename }))],
    ['create a secret', [{ method: 'POST', path: `/v1/orgs/${account.orgId}/secrets`, body: secretOf }]],
  ];
  for (const [title, questions] of cases)
    print(title, await compare(servers, questions, account.token, { ...rounds, connections: CONNECTIONS }));
}
