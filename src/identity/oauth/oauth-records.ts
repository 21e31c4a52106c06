import type { Adapter, AdapterPayload } from 'oidc-provider';
import { demandsFactor, hasFactor } from '../../access/factor-demand.ts';
import { tokenHash } from '../../access/random-token.ts';
import { demandsSso, vouchesFor } from '../../access/sso-demand.ts';
import type { Sql } from '../../data/sql.ts';
import type { Seal } from '../../platform/keys/seal.ts';

/** How long a refresh token that was replaced is still accepted (docs/decisions/0007). */
const GRACE_SECONDS = 60;

interface RecordRow {
  idHash: string;
  payload: Uint8Array;
  consumedAt: Date | null;
}

const COLUMNS = `id_hash as "idHash", payload, consumed_at as "consumedAt"`;
const FIND = `select ${COLUMNS} from oauth_records where kind = $1 and id_hash = $2 and expires_at > now()`;
const FIND_BY_UID = `select ${COLUMNS} from oauth_records where kind = $1 and uid = $2 and expires_at > now()`;
const FIND_BY_CODE = `select ${COLUMNS} from oauth_records
  where kind = $1 and user_code_hash = $2 and expires_at > now()`;
// a refresh within the grace makes the same successor again: it stays as it is, used or not
const UPSERT = `insert into oauth_records as r
    (kind, id_hash, grant_id, uid, user_code_hash, payload, expires_at)
  values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))
  on conflict (kind, id_hash) do update set grant_id = excluded.grant_id, uid = excluded.uid,
    user_code_hash = excluded.user_code_hash, payload = excluded.payload, expires_at = excluded.expires_at
  where r.kind <> 'RefreshToken'`;
/** What strangers can have kept: each of these takes along some that have expired. */
const OF_STRANGERS = new Set([
  'ClientDocument',
  'DeviceCode',
  'Interaction',
  'PushedAuthorizationRequest',
  'ReplayDetection',
  'Session',
]);
/** What is there once: whoever comes second at the same moment finds it. */
const INSERT_ONCE = `insert into oauth_records as r (kind, id_hash, payload, expires_at)
  values ($1, $2, $3, now() + make_interval(secs => $4))
  on conflict (kind, id_hash) do update set payload = excluded.payload, expires_at = excluded.expires_at
  where r.expires_at <= now()`;
const SWEEP = `delete from oauth_records where (kind, id_hash) in (
  select kind, id_hash from oauth_records where expires_at < now() order by expires_at limit 10
  for update skip locked)`;
const CONSUME = `update oauth_records set consumed_at = now()
  where kind = $1 and id_hash = $2 and consumed_at is null returning id_hash`;
const DESTROY = 'delete from oauth_records where kind = $1 and id_hash = $2';
const LIVING_GRANT = `select g.id from oauth_grants g join users u on u.id = g.user_id and u.is_active
  join organization_members m on m.org_id = g.org_id and m.user_id = g.user_id
  join organizations o on o.id = g.org_id and o.deleted_at is null
  left join sessions s on s.id = g.session_id and s.revoked_at is null and s.expires_at > now()
  where g.id = $1 and g.revoked_at is null and (g.session_id is null or s.id is not null)
    and (${vouchesFor('g.identity_provider_id', 'g.org_id')} or not ${demandsSso('o', 'g.user_id')}
      and (not ${demandsFactor('o', 'm')}
        or (g.with_factor or s.factor_at is not null) and ${hasFactor('g.user_id')}))`;

export interface RecordDeps {
  sql: Sql;
  seal: Seal;
  /** What is granted was taken back. */
  onRevoked: (grantId: string) => Promise<void>;
  /** The error for who comes second. */
  usedUp: () => Error;
  /** The error for an assertion that was sent before. */
  replayed: () => Error;
  /** The metadata of an application. */
  client: (id: string) => Promise<AdapterPayload | undefined>;
}

/**
 * What the authorization server keeps of one kind. Identifiers are hashed, because most of them work like passwords;
 * the rest is sealed.
 */
export class SealedRecords {
  readonly #kind: string;
  readonly #deps: Pick<RecordDeps, 'sql' | 'seal'>;

  constructor(kind: string, deps: Pick<RecordDeps, 'sql' | 'seal'>) {
    this.#kind = kind;
    this.#deps = deps;
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { grantId = null, uid = null, userCode } = payload;
    const hash = tokenHash(id);
    const sealed = this.#deps.seal.seal(JSON.stringify(payload), `${this.#kind} ${hash}`);
    const values = [this.#kind, hash, grantId, uid, userCode ? tokenHash(userCode) : null, sealed, expiresIn];
    await this.#deps.sql.write(UPSERT, values);
    if (OF_STRANGERS.has(this.#kind)) await this.#deps.sql.write(SWEEP, []);
  }

  /** @returns whether nobody has it yet */
  async insertOnce(id: string, payload: AdapterPayload, expiresIn: number): Promise<boolean> {
    const hash = tokenHash(id);
    const sealed = this.#deps.seal.seal(JSON.stringify(payload), `${this.#kind} ${hash}`);
    const isFirst = (await this.#deps.sql.write(INSERT_ONCE, [this.#kind, hash, sealed, expiresIn])) > 0;
    await this.#deps.sql.write(SWEEP, []);
    return isFirst;
  }

  find(id: string): Promise<AdapterPayload | undefined> {
    return this.read(FIND, tokenHash(id));
  }

  /** @param text one of the statements of this file, of a kind and a value */
  async read(text: string, value: string): Promise<AdapterPayload | undefined> {
    const [row] = await this.#deps.sql.read<RecordRow>(text, [this.#kind, value]);
    return this.#opened(row);
  }

  #opened(row: RecordRow | undefined): AdapterPayload | undefined {
    if (!row) return undefined;
    const { idHash, payload, consumedAt } = row;
    const known = JSON.parse(this.#deps.seal.open(payload, `${this.#kind} ${idHash}`)) as AdapterPayload;
    return isUsedUp(this.#kind, consumedAt) ? { ...known, consumed: Math.floor(consumedAt!.getTime() / 1000) } : known;
  }
}

/** What oidc-provider keeps, in one table. */
export class OAuthRecords implements Adapter {
  readonly #kind: string;
  readonly #deps: RecordDeps;
  readonly #kept: SealedRecords;

  constructor(kind: string, deps: RecordDeps) {
    this.#kind = kind;
    this.#deps = deps;
    this.#kept = new SealedRecords(kind, deps);
  }

  /** @throws `invalid_client` for an assertion that another request has just used */
  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    if (this.#kind !== 'ReplayDetection') return this.#kept.upsert(id, payload, expiresIn);
    if (!(await this.#kept.insertOnce(id, payload, expiresIn))) throw this.#deps.replayed();
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    if (this.#kind === 'Client') return this.#deps.client(id);
    if (this.#kind === 'Grant' && (await this.#deps.sql.read(LIVING_GRANT, [id])).length === 0) return undefined;
    return this.#kept.find(id);
  }

  findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return this.#kept.read(FIND_BY_UID, uid);
  }

  findByUserCode(userCode: string): Promise<AdapterPayload | undefined> {
    return this.#kept.read(FIND_BY_CODE, tokenHash(userCode));
  }

  /**
   * One of several at once uses it up. A refresh token may be used again for a minute, and gives the same successor.
   * @throws `invalid_grant` when another request has used it up: then nobody knows which of the two is honest
   */
  async consume(id: string): Promise<void> {
    const isFirst = (await this.#deps.sql.write(CONSUME, [this.#kind, tokenHash(id)])) > 0;
    if (isFirst || this.#kind === 'RefreshToken') return;
    const payload = await this.find(id);
    if (payload?.grantId) await this.#deps.onRevoked(payload.grantId);
    throw this.#deps.usedUp();
  }

  async destroy(id: string): Promise<void> {
    if (this.#kind === 'Grant') await this.#deps.onRevoked(id);
    await this.#deps.sql.write(DESTROY, [this.#kind, tokenHash(id)]);
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    await this.#deps.sql.write('delete from oauth_records where kind = $1 and grant_id = $2', [this.#kind, grantId]);
  }
}

function isUsedUp(kind: string, consumedAt: Date | null): boolean {
  if (!consumedAt) return false;
  return kind !== 'RefreshToken' || consumedAt.getTime() < Date.now() - GRACE_SECONDS * 1_000;
}
