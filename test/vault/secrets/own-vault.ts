import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { expect } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { newId } from '../../../src/kernel/ids.ts';
import { RootKeys } from '../../../src/platform/keys/root-keys.ts';
import { openDatabase } from '../../../src/platform/postgres/database.ts';
import { newDataKey, sealValue, wrapKey } from '../../../src/vault/secrets/envelope.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Run, runCommand, startCommand } from '../../support/command.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type Person, register } from '../../support/person.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { type Service, startService } from '../../support/service.ts';
import { newSecret, type Secret, secretsOf } from './new-secret.ts';

type Env = Record<string, string>;

/** 32 bytes as ROOT_KEYS has them. */
export const newKey = () => randomBytes(32).toString('base64');

/** The id of the root key that a file holds. */
export const idOf = (file: string) => file.slice('root-'.length, -'.key'.length);

/** A database and folders of a test's own, and what starts over them: their root keys come and go. */
export class OwnVault {
  readonly #stops: (() => Promise<unknown>)[] = [];

  private constructor(
    readonly base: string,
    readonly sql: pg.Client,
    private readonly database: TestDatabase,
  ) {}

  static async make(): Promise<OwnVault> {
    const database = await createTestDatabase();
    const sql = new pg.Client({ connectionString: database.url });
    await sql.connect();
    return new OwnVault(await mkdtemp(path.join(tmpdir(), 'vault-')), sql, database);
  }

  async remove(): Promise<void> {
    for (const stop of this.#stops) await stop();
    await this.sql.end();
    await this.database.drop();
    await rm(this.base, { recursive: true, force: true });
  }

  get keysDir(): string {
    return path.join(this.base, 'data', 'keys');
  }

  environment(env: Env = {}): Env {
    return { DATA_DIR: path.join(this.base, 'data'), DATABASE_URL: this.database.url, RATE_LIMIT_RPS: '0', ...env };
  }

  /** A service in a process of its own. */
  service(env: Env = {}): Service {
    const service = startService(this.environment(env));
    this.#stops.push(() => {
      service.child.kill('SIGKILL');
      return service.exited();
    });
    return service;
  }

  /** A service in this process, which is another one than that of a command. */
  async node(env: Env = {}): Promise<TestApp> {
    const node = await startTestApp({
      databaseUrl: this.database.url,
      env: this.environment({ ROOT_KEYS: '', ...env }),
    });
    this.#stops.push(() => node.close());
    return node;
  }

  /** What a start does about the root keys, and nothing else of it. */
  async openKeys(env: Env = {}): Promise<RootKeys> {
    const opened = openDatabase({ url: this.database.url, poolSize: 1, logger: quietLogger });
    try {
      return await RootKeys.open(loadConfig(this.environment(env)), opened);
    } finally {
      await opened.close();
    }
  }

  /** `npm run vault -- <command>`. */
  startVault(command: string, env: Env = {}) {
    return startCommand('vault', [command], this.environment(env));
  }

  /** The same, to its end. */
  async vault(command: string, env: Env = {}): Promise<Run> {
    const { code, output } = await runCommand('vault', [command], this.environment(env));
    return { code, output: output.trim() };
  }

  async keyFiles(): Promise<string[]> {
    return (await readdir(this.keysDir)).filter((name) => name.startsWith('root-')).sort();
  }

  /** The root keys that the database knows, each with the number of secrets that it seals. */
  async rootKeysInUse(): Promise<[string, number][]> {
    const { rows } = await this.sql.query<{ id: string; n: number }>(
      `select r.id, count(s.id)::int as n from root_keys r left join secrets s on s.root_key_id = r.id
       group by 1 order by 1`,
    );
    return rows.map(({ id, n }) => [id, n]);
  }

  /** How many others are changing secrets now. */
  async otherWriters(): Promise<number> {
    const { rows } = await this.sql.query<{ n: number }>(
      `select count(*)::int as n from pg_locks
       where relation = 'secrets'::regclass and mode = 'RowExclusiveLock' and pid <> pg_backend_pid()`,
    );
    return rows[0]!.n;
  }

  /** Makes secrets beside the one that there is, as the service would have sealed them: with the service's own code. */
  async fill(count: number): Promise<void> {
    const root = RootKeys.unchecked(loadConfig(this.environment())).newest;
    const { rows } = await this.sql.query<{ orgId: string }>('select org_id as "orgId" from secrets limit 1');
    const { orgId } = rows[0]!;
    const made = Array.from({ length: count }, (_, n) => ({ n, id: newId('secret'), dataKey: newDataKey() }));
    const ids = made.map(({ id }) => id);
    const wrapped = made.map(({ id, dataKey }) => wrapKey(root, { orgId, id }, dataKey));
    const sealed = made.map(({ id, dataKey, n }) => sealValue(dataKey, { orgId, id }, 1, { n }));
    await this.sql.query(
      `insert into secrets (id, org_id, name, secret_type, root_key_id, wrapped_key)
       select id, $1, 'filled-' || id, 'token', $2, key from unnest($3::text[], $4::bytea[]) as made (id, key)`,
      [orgId, root.id, ids, wrapped],
    );
    await this.sql.query(
      `insert into secret_versions (secret_id, version, ciphertext)
       select id, 1, sealed from unnest($1::text[], $2::bytea[]) as made (id, sealed)`,
      [ids, sealed],
    );
  }
}

/** Somebody who keeps secrets at a node. */
export class Keeper {
  private constructor(private readonly person: Person) {}

  static async of(node: TestApp): Promise<Keeper> {
    return new Keeper(await register(node));
  }

  get orgId(): string {
    return this.person.orgId;
  }

  /** @returns the id of a new secret */
  async create(value: object): Promise<string> {
    return (await newSecret(this.person, { value })).secret_id;
  }

  /** The value of a secret; the status of another answer. */
  async reveal(id: string): Promise<unknown> {
    const { status, body } = await this.person.call<Secret>('GET', `${this.#urlOf(id)}?include_value=true`);
    return status === 200 ? body.value : status;
  }

  /** @returns the status */
  async rotate(id: string, value: object): Promise<number> {
    return (await this.person.call('POST', `${this.#urlOf(id)}/rotate`, { value })).status;
  }

  #urlOf(id: string): string {
    return `${secretsOf(this.person)}/${id}`;
  }
}

/** Registers at a service in a process of its own, and makes one secret there. */
export async function sealOne(url: string): Promise<void> {
  const json = { 'content-type': 'application/json' };
  const post = async (to: string, body: object, headers = {}) => {
    const answer = await fetch(url + to, {
      method: 'POST',
      headers: { ...json, ...headers },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(201);
    return (await answer.json()) as { access_token: string; user: { settings: { current_org_id: string } } };
  };
  const account = { username: 'ann', email: 'ann@example.test', password: 'the password of ann' };
  const { access_token, user } = await post('/v1/auth/register', account);
  const secret = { name: 'one', secret_type: 'token', value: { k: 1 } };
  const secrets = secretsOf({ orgId: user.settings.current_org_id });
  await post(secrets, secret, { authorization: `Bearer ${access_token}` });
}
