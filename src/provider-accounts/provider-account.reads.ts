import { notFound } from '../core/errors.ts';
import { NestedList, nestedRow } from '../data/keyset-list.ts';
import type { Page, PageArgs } from '../data/page.ts';
import { filtersOf, type PageSource, readPage } from '../data/pages.ts';
import type { RequestCache } from '../data/request-cache.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { accountsSource, type ProviderAccount, SHOWN_STATUS } from './provider-account.source.ts';

export interface AccountFilters {
  providerType?: string | null;
  /** The status that is shown. */
  status?: string | null;
  /** Those that are enabled, whatever their health (defaults §8). */
  enabledOnly?: boolean | null;
}

const one: PageSource<ProviderAccount> = { ...accountsSource, where: ['t.org_id = $1', 't.id = $2'] };
const anywhere: PageSource<ProviderAccount> = { ...accountsSource, where: ['t.id = $1'] };

const withFilters = ({ providerType, status, enabledOnly }: AccountFilters) =>
  filtersOf({
    't.provider_type = ?': providerType,
    [`${SHOWN_STATUS} = ?`]: status,
    't.enabled = ?': enabledOnly || undefined,
  });

/** Reads of provider accounts. */
export class ProviderAccountReads {
  readonly #deps: ServiceDeps;
  readonly #list: NestedList<ProviderAccount>;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.#list = new NestedList(deps, 'provider_accounts', accountsSource);
  }

  async list(orgId: string, { first, after, ...filters }: PageArgs & AccountFilters): Promise<Page<ProviderAccount>> {
    return this.#list.page([orgId], { first, after }, withFilters(filters));
  }

  /** The same list below an organization of a list. */
  async listNested(
    memory: RequestCache,
    orgId: string,
    { first, after, ...filters }: PageArgs & AccountFilters,
  ): Promise<Page<ProviderAccount>> {
    return this.#list.nested(memory, [orgId], { first, after }, withFilters(filters));
  }

  /** @throws RESOURCE_NOT_FOUND */
  async get(orgId: string, id: string): Promise<ProviderAccount> {
    const { rows } = await readPage(this.#deps.sql, one, { values: [orgId, id], after: null, limit: 1 });
    if (!rows[0]) throw notFound('provider_account', id);
    return rows[0];
  }

  /** The same, read together with all that are asked for in this request. @throws RESOURCE_NOT_FOUND */
  async nested(memory: RequestCache, orgId: string, id: string): Promise<ProviderAccount> {
    const account = await nestedRow(memory, this.#deps.sql, 'provider_account', one, [orgId, id]);
    if (!account) throw notFound('provider_account', id);
    return account;
  }

  /** An account of any organization: whoever asks has to check. */
  async findAnywhere(id: string): Promise<ProviderAccount | null> {
    const { rows } = await readPage(this.#deps.sql, anywhere, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }
}
