import { startPgBouncer } from '../../test/support/pgbouncer.ts';
import type { Account } from '../api.ts';
import { compare, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import { ServerProcess } from '../server-process.ts';
import { newest } from './workspaces.ts';
import { writes } from './writes.ts';

/** A list, a get and changes of a node that is connected through PgBouncer, beside one that is connected directly. */
export async function pooler(
  args: string[],
  env: Record<string, string>,
  { direct, account }: { direct: ServerProcess; account: Account },
  rounds: Rounds,
): Promise<void> {
  const databaseUrl = env.DATABASE_URL!;
  const bouncer = await startPgBouncer({ serverUrl: databaseUrl, settings: { max_prepared_statements: 1_000 } });
  try {
    const url = bouncer.urlOf(new URL(databaseUrl).pathname.slice(1));
    const more = { DATABASE_URL: url, DATABASE_DIRECT_URL: databaseUrl };
    const pooled = await ServerProcess.start('through PgBouncer', args, { ...env, ...more });
    try {
      const servers = [direct, pooled];
      const list = `/v1/orgs/${account.orgId}/workspaces`;
      print('list of 50 workspaces', await compare(servers, `${list}?limit=50`, account.token, rounds));
      const one = `${list}/${await newest(direct, account)}`;
      print('get one workspace', await compare(servers, one, account.token, rounds));
      await writes(servers, direct, account, rounds);
    } finally {
      await pooled.stop();
    }
  } finally {
    await bouncer.stop();
  }
}
