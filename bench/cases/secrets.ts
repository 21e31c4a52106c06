import { type Account, call } from '../api.ts';
import { compare, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';

/** Number of secrets revealed in turn: readers of a single one would wait for one another at its counter. */
const SECRETS = 64;

/** A reveal by id: unwrapped, decrypted, counted and audited before it is returned. */
export async function secrets(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  rounds: Rounds,
): Promise<void> {
  const url = `/v1/orgs/${account.orgId}/secrets`;
  const paths: string[] = [];
  for (let n = 0; n < SECRETS; n++) {
    const body = { name: `bench-${n}`, secret_type: 'basic_auth', value: { username: 'bench', password: `p${n}` } };
    const { secret_id } = await call<{ secret_id: string }>(product, account.token, 'POST', url, body);
    paths.push(`${url}/${secret_id}?include_value=true`);
  }
  print(`reveal one of ${SECRETS} secrets`, await compare(servers, paths, account.token, rounds));
}
