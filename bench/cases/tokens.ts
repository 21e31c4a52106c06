import { type Account, call } from '../api.ts';
import { compare, type Rounds } from '../load.ts';
import { print, printRatio } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';
import { newest } from './workspaces.ts';

/**
 * A read by id, signed in with an API token that has restrictions. The hand-written server looks the token up each
 * time.
 */
export async function tokens(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  rounds: Rounds,
): Promise<void> {
  const workspaceId = await newest(product, account);
  const path = `/v1/orgs/${account.orgId}/workspaces/${workspaceId}`;
  const { plaintext_token } = await call<{ plaintext_token: string }>(
    product,
    account.token,
    'POST',
    `/v1/orgs/${account.orgId}/api-tokens`,
    { name: 'bench', scopes: ['read'], workspace_ids: [workspaceId], endpoint_paths: ['/v1/orgs/*/workspaces/**'] },
  );
  const withToken = await compare(servers, path, plaintext_token, rounds);
  print('get one workspace with an API token', withToken);
  const withSession = await compare([product], path, account.token, rounds);
  printRatio('product, API token / access token', withToken.get('product')!, withSession.get('product')!);
}
