import type { Authentication } from '../../access/authentication.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Caller } from '../../kernel/caller.ts';
import { notFound } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { MOST_SHOWN } from '../pages/most-shown.ts';
import { revokeTokens } from './api-token.revocation.ts';

/** An API token that works. */
export interface OwnToken {
  id: string;
  name: string;
  prefix: string;
  organization: string;
  expiresAt: Date | null;
}

const IS_LIVING = `t.created_by_user_id = $1 and t.token_type = 'pat'
    and (t.revoked_at is null or t.revoked_at > now()) and (t.expires_at is null or t.expires_at > now())`;
const LIVING = `select t.id, t.name, t.prefix, o.name as organization, t.expires_at as "expiresAt"
  from api_tokens t join organizations o on o.id = t.org_id and o.deleted_at is null
  where ${IS_LIVING} order by t.id desc limit ${MOST_SHOWN + 1}`;
const IS_OWN = `select from api_tokens t where ${IS_LIVING} and t.id = $2`;

/** The API tokens of a user in all organizations, for the page of the account. */
export class OwnTokens {
  readonly #deps: Pick<ServiceDeps, 'sql' | 'changes'> & { authentication: Authentication };

  constructor(deps: Pick<ServiceDeps, 'sql' | 'changes'> & { authentication: Authentication }) {
    this.#deps = deps;
  }

  /** Those that work, newest first: one more than are shown, if there are more. */
  list({ principal }: Caller): Promise<OwnToken[]> {
    return this.#deps.sql.read<OwnToken>(LIVING, [principal.userId]);
  }

  /** Revokes one with its family. @throws RESOURCE_NOT_FOUND */
  async revoke(caller: Caller, id: string): Promise<void> {
    const { userId } = sessionOf(caller, 'api_token:revoke');
    const { sql, changes, authentication } = this.#deps;
    if ((await sql.read(IS_OWN, [userId, id])).length === 0) throw notFound('api_token', id);
    await changes.run(caller, (tx) => revokeTokens(tx, authentication, { id }, 'revoked_by_user'));
  }
}
