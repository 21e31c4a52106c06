import type { TestApp } from '../../support/app.ts';
import type { Person } from '../../support/person.ts';

type Json = { readonly [key: string]: unknown };

export interface Target extends Json {
  provider_account_id: string;
  model_name: string;
  consecutive_failures: number;
}

export interface Model extends Json {
  logical_model_id: string;
  status: string;
  status_reason: string | null;
  targets: Target[];
  fallback_chain: string[];
}

export const catalogOf = ({ orgId }: Person) => `/v1/orgs/${orgId}/model-catalog`;
export const accountsOf = ({ orgId }: Person) => `/v1/orgs/${orgId}/provider-accounts`;
export const entitlementsOf = ({ home }: Person) => `${home}/model-entitlements`;
export const modelUrl = (owner: Person, id: string) => `${catalogOf(owner)}/${encodeURIComponent(id)}`;

async function made<T>(owner: Person, url: string, payload: object): Promise<T> {
  const { status, body } = await owner.call<T>('POST', url, payload);
  if (status !== 201) throw new Error(`POST ${url} answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

let count = 0;

/** A provider account; `active`, as if a request had succeeded, unless told. */
export async function newAccount(app: TestApp, owner: Person, fields: object = {}, status = 'active'): Promise<string> {
  const payload = { name: 'Account', provider_type: 'openai', credentials_ref: 'env:KEY', ...fields };
  const { provider_account_id: id } = await made<{ provider_account_id: string }>(owner, accountsOf(owner), payload);
  await app.database.prisma.providerAccount.update({ where: { id }, data: { status } });
  return id;
}

/** A model with targets at the given accounts, each named `target-<n>` unless told. */
export async function newModel(owner: Person, fields: object = {}, targets: (string | Json)[] = []): Promise<Model> {
  const list = targets.map((target, index) => {
    const own = typeof target === 'string' ? { provider_account_id: target } : target;
    return { model_name: `target-${index}`, ...own };
  });
  return made<Model>(owner, catalogOf(owner), {
    logical_model_id: `model-${++count}`,
    name: 'Model',
    targets: list,
    ...fields,
  });
}

/** Lets the owner's workspace use a model. */
export async function entitle(owner: Person, logicalModelId: string, fields: object = {}): Promise<Json> {
  return made<Json>(owner, entitlementsOf(owner), { logical_model_id: logicalModelId, ...fields });
}
