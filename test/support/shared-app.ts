import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { FastifyInstance, InjectOptions } from 'fastify';
import pg from 'pg';
import type { TestApp } from './app.ts';
import { type Content, contentOf, restore } from './database-content.ts';
import { expectDocumented } from './documented.ts';
import { timed } from './times.ts';
import { waitUntil } from './wait.ts';

/** It runs on, says so to other nodes, and knows in memory when each scheduled task was last due. */
const KEPT = ['jobs._private_known_crontabs', 'public.nodes'];

/**
 * One app for the files of a process: each takes it, finds an empty database, no mail and no file, and gives it back
 * when everything that it began has ended.
 */
export class SharedApp {
  readonly #start: () => Promise<TestApp>;
  #app: TestApp | undefined;
  #fresh: Content = new Map();
  #isTaken = false;
  #taken = 0;

  constructor(start: () => Promise<TestApp>) {
    this.#start = start;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  async take(): Promise<TestApp> {
    this.#isTaken = true;
    if (this.#app) await this.#empty(this.#app);
    else await this.#begin();
    const app = this.#app!;
    const others: TestApp[] = [];
    let closing: Promise<void> | null = null;
    const own: TestApp = {
      ...app,
      server: fromOwnAddress(app.server, ++this.#taken),
      url: '',
      async listen() {
        own.url = await app.listen();
        return own.url;
      },
      async another(env) {
        const other = await app.another(env);
        others.push(other);
        return other;
      },
      close: () => {
        closing ??= timed('app', () => this.#giveBack(app, others));
        return closing;
      },
    };
    return own;
  }

  async #begin(): Promise<void> {
    const app = await this.#start();
    refuseToStop(app);
    this.#app = app;
    this.#fresh = await withClient(app, (client) => contentOf(client, KEPT));
    process.once('exit', () => rmSync(app.dataDir, { recursive: true, force: true }));
  }

  /** @throws Error when work does not end, or a route answered what the OpenAPI document does not list */
  async #giveBack(app: TestApp, others: readonly TestApp[]): Promise<void> {
    await Promise.all(others.map((other) => other.close()));
    app.server.server.closeAllConnections();
    for (const socket of app.server.websocketServer.clients) socket.terminate();
    await waitUntil(() => app.services.tail.size === 0, { what: 'the event streams of the file to end' });
    await app.jobsDone();
    await Promise.all([app.services.activity.flush(), app.services.tokenUses.flush()]);
    this.#isTaken = false;
    expectDocumented(app.server);
  }

  async #empty(app: TestApp): Promise<void> {
    await withClient(app, (client) => restore(client, this.#fresh, KEPT));
    app.mails.length = 0;
    for (const entry of readdirSync(app.dataDir, { recursive: true, withFileTypes: true }))
      if (entry.isFile() && entry.parentPath !== app.keysDir && entry.name !== 'marker')
        rmSync(path.join(entry.parentPath, entry.name));
  }
}

/** What a file would stop, each file after it in this process would miss. */
function refuseToStop(app: TestApp): void {
  const refuse = () => {
    throw new Error('The app of all files of this process would be stopped: take startOwnApp.');
  };
  app.services.events.close = refuse;
  app.server.close = refuse;
  app.database.pool.end = refuse;
  app.stop = refuse;
}

/** Limits by the address of the client are kept in memory: each file has one of its own. */
function fromOwnAddress(server: FastifyInstance, n: number): FastifyInstance {
  const remoteAddress = `127.0.${n >> 8}.${(n & 255) + 1}`;
  const inject = (options: InjectOptions | string) =>
    server.inject({ remoteAddress, ...(typeof options === 'string' ? { url: options } : options) });
  return Object.create(server, { inject: { value: inject } }) as FastifyInstance;
}

async function withClient<T>({ database }: TestApp, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
