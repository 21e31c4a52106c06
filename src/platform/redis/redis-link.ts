import { createHmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { every } from '../every.ts';
import type { Logger } from '../logger.ts';
import { RedisOutage } from './redis-outage.ts';

/** A command that has no answer after this time ends the connection: no request waits longer, and only the first do. */
const ANSWER_MS = 250;
/** A start waits so long for the first connection. */
const START_MS = 1_000;
/** An idle connection is looked at so often, and one that is not made by then is made anew. */
const LOOK_MS = 5_000;
const MOST_RETRY_MS = 2_000;

export interface RedisLinkOptions {
  url: string;
  /** Of the service: the same on all its nodes. Its keys in Redis, and what they name, follow from it. */
  secret: Buffer;
  logger: Logger;
  /** How long a command may take, in milliseconds. Default: {@link ANSWER_MS}. */
  answerMs?: number;
}

/** The state of Redis for probes. */
export interface RedisState {
  status: 'ok' | 'away';
  /** Why it is away: a code, never a text of the server. */
  reason?: string;
  since?: string;
}

/** Redis is not connected, or has not answered in time. */
class RedisAway extends Error {
  constructor(readonly code: string) {
    super('Redis does not answer.');
  }
}

/**
 * The connection to Redis, beside the database, for what nodes may share and may lose. Whatever is asked of it can fail
 * at any time, within a short bound, and who asks does without. While it is away nobody waits for it.
 */
export class RedisLink {
  readonly #client: Redis;
  readonly #secret: Buffer;
  readonly #outage: RedisOutage;
  readonly #prefix: string;
  readonly #answerMs: number;
  readonly #listeners = new Map<string, (text: string) => void>();
  #endLooking: () => Promise<void> = async () => undefined;
  /** Whether the last look found a connection that was not made yet. */
  #isSlow = false;
  #failures = 0;

  private constructor(client: Redis, { secret, logger, answerMs = ANSWER_MS }: RedisLinkOptions) {
    this.#client = client;
    this.#answerMs = answerMs;
    this.#secret = createHmac('sha256', secret).update('redis').digest();
    this.#outage = new RedisOutage(logger);
    this.#prefix = `platform:${this.#digest('service').slice(0, 12)}`;
    client.on('ready', () => void this.#begin());
    client.on('error', (error: unknown) => this.#outage.begin(error));
    client.on('message', (channel: string, text: string) => this.#listeners.get(channel)?.(text));
  }

  /**
   * Connects. A Redis that is not there delays a start by a second, and is tried again for ever. The library is loaded
   * only here: a service without Redis does without it.
   */
  static async open(options: RedisLinkOptions): Promise<RedisLink> {
    const { Redis: Client } = await import('ioredis');
    const client = new Client(options.url, {
      lazyConnect: true,
      // a command that cannot be sent, or whose connection ends, fails at once
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResubscribe: false,
      // of a user that may use keys and channels alone, nothing else is asked
      enableReadyCheck: false,
      disableClientInfo: true,
      connectTimeout: MOST_RETRY_MS,
      retryStrategy: (times) => Math.min(MOST_RETRY_MS, 50 * 2 ** Math.min(times, 6)) * (0.9 + Math.random() * 0.2),
      // the old primary of a failover only reads
      reconnectOnError: (error) => error.message.startsWith('READONLY'),
    });
    const link = new RedisLink(client, options);
    const connected = client.connect().catch(() => undefined); // told as the error of the client
    await Promise.race([connected, delay(START_MS, undefined, { ref: false })]);
    if (client.status !== 'ready') link.#outage.begin(new RedisAway('ETIMEDOUT'));
    link.#endLooking = every(
      LOOK_MS,
      () => link.state(),
      () => undefined,
    ); // it tells itself
    return link;
  }

  /** Number of commands that failed: what they were for was done without Redis. */
  get failures(): number {
    return this.#failures;
  }

  get isUp(): boolean {
    return this.#isConnected && this.#outage.since === null;
  }

  /** Asks Redis whether it answers. */
  async state(): Promise<RedisState> {
    if (this.#client.status === 'ready') await this.ask((client) => client.ping()).catch(() => undefined);
    else this.#endSlowConnection();
    const { since, reason } = this.#outage;
    return since === null ? { status: 'ok' } : { status: 'away', reason, since: since.toISOString() };
  }

  /** The name of a key: what it names cannot be read from it. */
  key(kind: string, name: string): string {
    return `${this.#prefix}:${kind}:${this.#digest(name)}`;
  }

  /** The beginning of keys of a kind. */
  prefix(kind: string): string {
    return `${this.#prefix}:${kind}`;
  }

  /** A name that cannot be read, for a key. */
  hidden(name: string): string {
    return this.#digest(name);
  }

  /**
   * Sends a command. @throws Error within {@link ANSWER_MS} when Redis is away, does not answer or refuses: the caller
   * goes on without
   */
  async ask<T>(command: (client: Redis) => Promise<T>): Promise<T> {
    try {
      if (!this.#isConnected) throw new RedisAway('ECONNRESET');
      const answer = await this.#inTime(command(this.#client));
      this.#outage.end();
      return answer;
    } catch (error) {
      this.#failures += 1;
      this.#outage.begin(error);
      throw error;
    }
  }

  /** Declares a script. @returns runs it with keys and arguments @throws as {@link ask} */
  script(name: string, lua: string): (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown> {
    this.#client.defineCommand(name, { lua });
    type Scripted = Record<string, (count: number, ...rest: readonly (string | number)[]) => Promise<unknown>>;
    return (keys, args) => this.ask((client) => (client as unknown as Scripted)[name]!(keys.length, ...keys, ...args));
  }

  /** Hears what nodes publish on a channel, from the next connection on. It may be lost. */
  listen(channel: string, listener: (text: string) => void): void {
    this.#listeners.set(this.prefix(channel), listener);
    if (this.#client.status === 'ready') void this.#begin();
  }

  /** Tells the other nodes, unless Redis is away. */
  publish(channel: string, text: string): void {
    if (!this.isUp) return;
    this.ask((client) => client.publish(this.prefix(channel), text)).catch(() => undefined); // counted, and told once
  }

  async close(): Promise<void> {
    this.#client.removeAllListeners('error').on('error', () => undefined);
    await this.#endLooking();
    this.#client.disconnect();
  }

  /** With RESP3 a connection that listens may ask as well. */
  async #begin(): Promise<void> {
    const channels = [...this.#listeners.keys()];
    await this.ask((client) => (channels.length > 0 ? client.subscribe(...channels) : client.ping())).catch(
      () => undefined, // told already
    );
  }

  /** The client learns a moment later that its connection was ended. */
  get #isConnected(): boolean {
    return this.#client.status === 'ready' && !this.#client.stream.destroyed;
  }

  #digest(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('base64url').slice(0, 22);
  }

  #inTime<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let isOver = false;
      const timer = setTimeout(() => {
        // an answer that came while this process was busy is read before this
        setImmediate(() => {
          if (isOver) return;
          reject(new RedisAway('ETIMEDOUT'));
          this.#client.stream.destroy();
        });
      }, this.#answerMs);
      const end = (): void => {
        isOver = true;
        clearTimeout(timer);
      };
      answer.finally(end).then(resolve, reject);
    });
  }

  /** A server that is stopped takes connections, and says nothing. */
  #endSlowConnection(): void {
    const isWaiting = this.#client.status === 'connect';
    if (isWaiting && this.#isSlow) this.#client.stream.destroy();
    this.#isSlow = isWaiting && !this.#isSlow;
  }
}
