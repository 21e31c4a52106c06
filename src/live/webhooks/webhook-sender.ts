import type { Access } from '../../access/access.ts';
import type { Sql } from '../../data/sql.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import { OutboundError } from '../../platform/outbound/outbound-error.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import { VaultFault } from '../../vault/secrets/envelope.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { type AttemptResult, excerptOf, retryAfterOf } from './webhook-attempts.ts';
import { CALLER_COLUMNS, CALLER_JOIN, type CallingWebhook, callerOf, IN_USE } from './webhook-caller.ts';
import type { WebhookDisabling } from './webhook-disabling.ts';
import type { TakenDelivery } from './webhook-queue.ts';
import { livingKeys, signatureHeaders } from './webhook-signing.ts';

/** The whole time of an attempt. */
const ATTEMPT_TIMEOUT_MS = 15_000;
/** How long what goes with each message is kept in memory: a secret that is disabled ends within a second. */
const FRESH_MS = 1_000;
const RESERVED = /^(webhook-|content-type$|content-encoding$|accept)/;

interface WebhookRow extends CallingWebhook {
  url: string;
  headersRef: string | null;
}

const WEBHOOK = `select h.url, h.headers_ref as "headersRef", ${CALLER_COLUMNS}
  from webhooks h ${CALLER_JOIN} where h.id = $1 and ${IN_USE}`;

/** What is needed to send something to a webhook. */
export interface MessageTarget {
  url: string;
  /** The keys that sign. */
  keys: readonly string[];
  /** From the vault; `null` if they cannot be had now. */
  headers: Readonly<Record<string, string>> | null;
}

interface SenderDeps {
  sql: Sql;
  access: Access;
  vault: Vault;
  credentials: Credentials;
  outbound: Outbound;
  disabling: WebhookDisabling;
  onFault: (error: unknown, what: string) => void;
}

interface KeptTarget {
  value: MessageTarget;
  /** Time from `performance.now()`. */
  until: number;
}

/** Sends single messages to webhooks. */
export class WebhookSender {
  readonly #deps: SenderDeps;
  readonly #destinations = new Map<string, KeptTarget>();

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  /** Where a webhook sends; `null` if it sends nothing. One without access is disabled. */
  async destination(webhookId: string): Promise<MessageTarget | null> {
    const known = this.#destinations.get(webhookId);
    if (known && known.until > performance.now()) return known.value;
    const { sql, access, disabling } = this.#deps;
    this.#destinations.delete(webhookId);
    const [webhook] = await sql.read<WebhookRow>(WEBHOOK, [webhookId]);
    if (!webhook) return null;
    const caller = await callerOf(access, webhook);
    if (caller === 'no access') await disabling.disable(webhookId, 'no_access');
    if (typeof caller === 'string') return null;
    const destination = {
      url: webhook.url,
      keys: await this.#keysOf(webhook.orgId, webhookId),
      headers: await this.#headersOf(webhook),
    };
    this.#destinations.set(webhookId, { value: destination, until: performance.now() + FRESH_MS });
    return destination;
  }

  /** Forgets what is older than it may be. */
  forget(): void {
    for (const [id, { until }] of this.#destinations) if (until <= performance.now()) this.#destinations.delete(id);
  }

  /** Makes one attempt. */
  async send(
    { url, keys, headers }: MessageTarget,
    { eventId, body }: Pick<TakenDelivery, 'eventId' | 'body'>,
    { owner, signal }: { owner: string; signal: AbortSignal },
  ): Promise<AttemptResult> {
    const at = new Date();
    const startedAt = performance.now();
    const ended = (answer: Pick<AttemptResult['attempt'], 'status_code' | 'error' | 'answer'>) => ({
      at: at.toISOString(),
      duration_ms: Math.round(performance.now() - startedAt),
      ...answer,
    });
    const failed = (error: string): AttemptResult => ({
      attempt: ended({ status_code: null, error, answer: null }),
      isDelivered: false,
      retryAfter: null,
    });
    if (headers === null || keys.length === 0) return failed('headers');
    const message = { id: eventId, timestamp: Math.floor(at.getTime() / 1_000), body };
    try {
      const answer = await this.#deps.outbound.request({
        method: 'POST',
        url,
        headers: { ...headers, 'content-type': 'application/json', ...signatureHeaders(message, keys) },
        body,
        redirect: 'error',
        timeoutMs: ATTEMPT_TIMEOUT_MS,
        owner,
        signal,
      });
      const excerpt = excerptOf(answer, Object.values(headers));
      return {
        attempt: ended({ status_code: answer.status, error: null, answer: excerpt }),
        isDelivered: answer.isOk,
        retryAfter: retryAfterOf(answer.headers.get('retry-after')),
      };
    } catch (error) {
      if (error instanceof OutboundError) return failed(error.code);
      throw error;
    }
  }

  /** The keys that sign now: none if they do not open. */
  async #keysOf(orgId: string, webhookId: string): Promise<string[]> {
    try {
      const stored = await this.#deps.credentials.open(this.#deps.sql, orgId, { webhookId });
      return stored ? livingKeys(stored) : [];
    } catch (error) {
      if (!(error instanceof VaultFault)) throw error;
      this.#deps.onFault(error, 'the signing keys of a webhook could not be opened');
      return [];
    }
  }

  /** The entries of the secret that a webhook names; `null` if it is gone, disabled, expired or no headers. */
  async #headersOf({ orgId, headersRef }: WebhookRow): Promise<Record<string, string> | null> {
    if (headersRef === null) return {};
    try {
      const value = await this.#deps.vault.open(systemCaller('webhooks'), orgId, headersRef);
      const headers = Object.fromEntries(
        Object.entries(value).map(([name, text]) => [name.toLowerCase(), typeof text === 'string' ? text : '']),
      );
      return Object.entries(headers).some(([name, text]) => text === '' || RESERVED.test(name)) ? null : headers;
    } catch (error) {
      this.#deps.onFault(error, 'the headers of a webhook could not be opened');
      return null;
    }
  }
}
