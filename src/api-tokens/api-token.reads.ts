import { NestedList } from '../data/keyset-list.ts';
import { columnsOf, type PageSource, readPage } from '../data/pages.ts';
import type { ServiceDeps } from '../data/service-deps.ts';
import { type ApiToken as ApiTokenRow, Prisma } from '../generated/prisma/client.ts';

/** A token as lists show it: neither its text nor a hash of it (spec, API token). */
export type ApiToken = Omit<
  ApiTokenRow,
  | 'familyId'
  | 'makerFamilyId'
  | 'rootFamilyId'
  | 'endsBy'
  | 'tokenHash'
  | 'refreshHash'
  | 'rotatedAt'
  | 'reissuedAt'
  | 'successorId'
  | 'noticedDays'
>;

const {
  familyId: _family,
  makerFamilyId: _maker,
  rootFamilyId: _root,
  endsBy: _end,
  tokenHash: _hash,
  refreshHash: _refresh,
  rotatedAt: _rotated,
  reissuedAt: _reissued,
  successorId: _successor,
  noticedDays: _noticed,
  ...columns
} = columnsOf(Object.values(Prisma.ApiTokenScalarFieldEnum));

// revoked ones are shown for 90 days (defaults §3), the newest of them: a program that refreshes every minute must not hide what is alive
const MOST_REVOKED = 5_000;
const SHOWN = `(t.revoked_at is null or t.revoked_at > now() - interval '90 days')`;

/** The tokens of an owner that are shown. @param whose conditions on `t` */
const shown = (...whose: string[]): PageSource<ApiToken> => ({
  from: 'api_tokens t',
  columns,
  key: 't.id',
  order: 'desc',
  where: [
    ...whose,
    SHOWN,
    `(t.revoked_at is null or t.id > coalesce((select r.id from api_tokens r
      where ${whose.join(' and ').replaceAll('t.', 'r.')} and r.revoked_at is not null order by r.id desc offset ${MOST_REVOKED} limit 1), ''))`,
  ],
});

const ofOrganization: PageSource<ApiToken> = shown('t.org_id = $1');
const ofUser: PageSource<ApiToken> = shown('t.org_id = $1', 't.created_by_user_id = $2', `t.token_type = 'pat'`);
const ofApp: PageSource<ApiToken> = shown('t.org_id = $1', 't.app_id = $2');
const one: PageSource<ApiToken> = { ...ofOrganization, where: ['t.id = $1'] };

/** Reads of API tokens and app tokens, newest first. */
export class ApiTokenReads {
  /** All tokens of an organization: `[orgId]`. */
  readonly all: NestedList<ApiToken>;
  /** The API tokens of a user in an organization: `[orgId, userId]`. */
  readonly own: NestedList<ApiToken>;
  /** The tokens of an app: `[orgId, appId]`. */
  readonly ofApp: NestedList<ApiToken>;
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
    this.all = new NestedList(deps, 'all_api_tokens', ofOrganization);
    this.own = new NestedList(deps, 'api_tokens', ofUser);
    this.ofApp = new NestedList(deps, 'app_tokens', ofApp);
  }

  /** A token of any organization: whoever asks has to check. */
  async findAnywhere(id: string): Promise<ApiToken | null> {
    const { rows } = await readPage(this.#deps.sql, one, { values: [id], after: null, limit: 1 });
    return rows[0] ?? null;
  }
}
