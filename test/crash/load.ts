import { Client, type Outcome } from './client.ts';

/**
 * How many writers work on each kind of change, and how many of their changes must be acknowledged before something is
 * killed.
 */
const WRITERS = 2;
const ENOUGH = 6;

type Body = Record<string, unknown>;

/** A kind of change that is made over and over, and what was promised of it. */
export abstract class Writer {
  acknowledged = 0;
  inFlight = 0;
  protected readonly client: Client;

  constructor(client: Client) {
    this.client = client;
  }

  /** One more change, or two. */
  abstract step(n: number): Promise<void>;

  /**
   * Sends a change; `null` where nothing was promised of it. `maybe` is told of one that may have happened all the
   * same.
   */
  protected async change(method: string, path: string, body: object, maybe?: () => void): Promise<Body | null> {
    const outcome: Outcome = await this.client.send(method, path, body);
    if (outcome.is === 'in flight') {
      this.inFlight++;
      maybe?.();
    }
    if (outcome.is !== 'acknowledged') return null;
    this.acknowledged++;
    return outcome.body;
  }
}

/** Creates workspaces and renames them. */
export class Workspaces extends Writer {
  /** Names that each may have: the one that was acknowledged last, and one that was in flight after it. */
  readonly names = new Map<string, string[]>();
  /** Names of those that may have been made. */
  readonly maybeMade: string[] = [];

  async step(n: number): Promise<void> {
    const path = `/v1/orgs/${this.client.orgId}/workspaces`;
    const name = `${this.label} ${n}`;
    const made = { organization_id: this.client.orgId, name };
    const created = await this.change('POST', path, made, () => this.maybeMade.push(name));
    if (!created) return;
    const id = created.workspace_id as string;
    this.names.set(id, [name]);
    const next = `renamed ${name}`;
    const renamed = await this.change('PUT', `${path}/${id}`, { name: next }, () => this.names.get(id)!.push(next));
    if (renamed) this.names.set(id, [next]);
  }

  constructor(
    client: Client,
    private readonly label: string,
  ) {
    super(client);
  }
}

/** Rotates one secret. */
export class Rotations extends Writer {
  /** Value of each version that was acknowledged. */
  readonly values = new Map<number, string>();
  readonly maybeValues: string[] = [];

  constructor(
    client: Client,
    readonly secretId: string,
  ) {
    super(client);
  }

  async step(n: number): Promise<void> {
    const path = `/v1/orgs/${this.client.orgId}/secrets/${this.secretId}/rotate`;
    const value = `value ${n}`;
    const rotated = await this.change('POST', path, { value: { value } }, () => this.maybeValues.push(value));
    if (rotated) this.values.set(rotated.vault_version as number, value);
  }
}

/** Deploys one release after the other to the same place. */
export class Deployments extends Writer {
  readonly ids: string[] = [];

  constructor(
    client: Client,
    readonly environmentId: string,
    private readonly appId: string,
    private readonly releaseIds: readonly string[],
  ) {
    super(client);
  }

  async step(n: number): Promise<void> {
    const { orgId, workspaceId } = this.client;
    const path = `/v1/orgs/${orgId}/workspaces/${workspaceId}/environments/${this.environmentId}/deploy`;
    const release_id = this.releaseIds[n % this.releaseIds.length];
    const deployed = await this.change('POST', path, { app_id: this.appId, release_id });
    if (deployed) this.ids.push(deployed.deployment_id as string);
  }
}

/** Refreshes an API token; where no answer came, with the same refresh token again. */
export class TokenRefreshes extends Writer {
  readonly ids: string[];

  constructor(
    client: Client,
    id: string,
    public refreshToken: string,
  ) {
    super(client);
    this.ids = [id];
  }

  async step(): Promise<void> {
    const path = `/v1/orgs/${this.client.orgId}/api-tokens/refresh`;
    const refreshed = await this.change('POST', path, { refresh_token: this.refreshToken });
    if (!refreshed) return;
    const { token, refresh_token_plaintext } = refreshed as unknown as Issued;
    this.ids.push(token.token_id);
    this.refreshToken = refresh_token_plaintext;
  }
}

/** Refreshes the session of somebody who has signed in. */
export class SessionRefreshes extends Writer {
  refreshToken = this.client.refreshToken;

  async step(): Promise<void> {
    const refreshed = await this.change('POST', '/v1/auth/refresh', { refresh_token: this.refreshToken });
    if (refreshed) this.refreshToken = refreshed.refresh_token as string;
  }
}

interface Issued {
  token: { token_id: string };
  refresh_token_plaintext: string;
}

/** Everything at once: the writers work until they are told to stop. */
export class Load {
  readonly client: Client;
  readonly workspaces: Workspaces[];
  readonly rotations: Rotations[];
  readonly deployments: Deployments[];
  readonly tokens: TokenRefreshes[];
  readonly sessions: SessionRefreshes[];
  #stopped = false;
  readonly #running: Promise<void>[];

  private constructor(
    client: Client,
    writers: Pick<Load, 'workspaces' | 'rotations' | 'deployments' | 'tokens' | 'sessions'>,
  ) {
    this.client = client;
    this.workspaces = writers.workspaces;
    this.rotations = writers.rotations;
    this.deployments = writers.deployments;
    this.tokens = writers.tokens;
    this.sessions = writers.sessions;
    this.#running = this.writers.map(async (writer) => {
      for (let n = 0; !this.#stopped; n++) await writer.step(n);
    });
  }

  /** Makes what the writers need, and starts them. */
  static async start(url: string): Promise<Load> {
    const client = await Client.register(url);
    const organization = `/v1/orgs/${client.orgId}`;
    const workspace = `${organization}/workspaces/${client.workspaceId}`;
    const make = async (path: string, body: object): Promise<Body> => {
      const outcome = await client.send('POST', path, body);
      if (outcome.is !== 'acknowledged') throw new Error(`${path}: ${outcome.is} ${client.strange.join()}`);
      return outcome.body;
    };
    const { app_id } = (await make(`${workspace}/apps`, { name: 'app' })) as { app_id: string };
    const releases: string[] = [];
    for (const version of ['1.0.0', '1.1.0', '1.2.0'])
      releases.push((await make(`${workspace}/apps/${app_id}/releases`, { version })).release_id as string);
    const each = <T>(work: (n: number) => Promise<T>) =>
      Promise.all(Array.from({ length: WRITERS }, (_, writer) => work(writer)));
    return new Load(client, {
      workspaces: await each(async (n) => new Workspaces(client, `of ${n}:`)),
      rotations: await each(async (n) => {
        const body = { name: `secret-${n}`, secret_type: 'token', value: { value: 'first' } };
        return new Rotations(client, (await make(`${organization}/secrets`, body)).secret_id as string);
      }),
      deployments: await each(async (n) => {
        const made = await make(`${workspace}/environments`, { name: `stage ${n}`, slug: `stage-${n}` });
        const { environment_id } = made.environment as { environment_id: string };
        return new Deployments(client, environment_id, app_id, releases);
      }),
      tokens: await each(async (n) => {
        const issued = (await make(`${organization}/api-tokens`, { name: `token ${n}` })) as unknown as Issued;
        return new TokenRefreshes(client, issued.token.token_id, issued.refresh_token_plaintext);
      }),
      sessions: [new SessionRefreshes(client)],
    });
  }

  get writers(): readonly Writer[] {
    return [...this.workspaces, ...this.rotations, ...this.deployments, ...this.tokens, ...this.sessions];
  }

  /** How many changes of each writer were acknowledged. */
  get acknowledged(): number[] {
    return this.writers.map(({ acknowledged }) => acknowledged);
  }

  /** How many changes nobody can know of. */
  get inFlight(): number {
    return this.writers.reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  /** Whether every writer got enough done since it had done `before`. */
  hasDoneEnough(before: readonly number[] = []): boolean {
    return this.acknowledged.every((done, index) => done >= (before[index] ?? 0) + ENOUGH);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }
}
