import { type Account, call } from '../api.ts';
import { compare, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';

const MODELS = 200;
const TARGETS = 3;

/** A list of 50 logical models with their targets nested and their health derived. */
export async function models(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  rounds: Rounds,
): Promise<void> {
  const organization = `/v1/orgs/${account.orgId}`;
  const post = <Body>(path: string, body: object) =>
    call<Body>(product, account.token, 'POST', organization + path, body);
  const { provider_account_id } = await post<{ provider_account_id: string }>('/provider-accounts', {
    name: 'Bench',
    provider_type: 'openai',
    credentials_ref: 'external:bench',
  });
  for (let n = 0; n < MODELS; n++) {
    await post('/model-catalog', {
      logical_model_id: `bench/${n}`,
      name: `Model ${n}`,
      description: 'Made to be measured.',
      capabilities: { streaming: true, tools: false },
      tags: { team: 'bench' },
      targets: Array.from({ length: TARGETS }, (_, at) => ({ provider_account_id, model_name: `model-${n}-${at}` })),
    });
  }
  print(
    `list of 50 models with ${TARGETS} targets each`,
    await compare(servers, `${organization}/model-catalog`, account.token, rounds),
  );
}
