import type { Access } from '../../access/access.ts';
import type { Sql } from '../../data/sql.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import { VaultFault } from '../../vault/secrets/envelope.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { type ActingUser, CALLER_COLUMNS, CALLER_JOIN } from '../sending/acting-user.ts';
import { type AttemptResult, attempted, failedAttempt } from '../sending/attempts.ts';
import type { Disabling } from '../sending/disabling.ts';
import { textsOf } from '../sending/secret-texts.ts';
import type { MessageSender } from '../sending/send-line.ts';
import { webhookCaller } from './webhook-caller.ts';
import { type WebhookMessage, webhookChannel } from './webhook-channel.ts';
import { livingKeys, signatureHeaders } from './webhook-signing.ts';

/** The whole time of an attempt. */
const ATTEMPT_TIMEOUT_MS = 15_000;
/** How long what goes with each message is kept in memory: a secret that is disabled ends within a second. */
const FRESH_MS = 1_000;
const RESERVED = /^(webhook-|content-type$|content-encoding$|accept)/;

interface WebhookRow extends ActingUser {
  workspaceId: string | null;
  url: string;
  headersRef: string | null;
}

const WEBHOOK = `select h.workspace_id as "workspaceId", h.url, h.headers_ref as "headersRef", ${CALLER_COLUMNS}
  from webhooks h ${CALLER_JOIN} where h.id = $1 and ${webhookChannel.inUse}`;

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
  disabling: Disabling;
  onFault: (error: unknown, what: string) => void;
}

interface KeptTarget {
  value: MessageTarget;
  /** Time from `performance.now()`. */
  until: number;
}

/** Sends single messages to webhooks. */
export class WebhookSender implements MessageSender<MessageTarget, WebhookMessage> {
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
    const caller = await webhookCaller(access, webhook);
    if (caller === 'no access') await disabling.disable(webhookId, 'no_access');
    if (typeof caller === 'string') return null;
    const destination = {
      url: webhook.url,
      keys: await this.#keysOf(webhook.orgId, webhookId),
      headers: await textsOf(this.#deps, 'webhooks', {
        orgId: webhook.orgId,
        reference: webhook.headersRef,
        reserved: RESERVED,
      }),
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
    { eventId, body }: WebhookMessage,
    { owner, signal }: { owner: string; signal: AbortSignal },
  ): Promise<AttemptResult> {
    if (headers === null || keys.length === 0) return failedAttempt('headers');
    const message = { id: eventId, timestamp: Math.floor(Date.now() / 1_000), body };
    const request = {
      method: 'POST',
      url,
      headers: { ...headers, 'content-type': 'application/json', ...signatureHeaders(message, keys) },
      body,
      redirect: 'error',
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      owner,
      signal,
    } as const;
    return attempted(() => this.#deps.outbound.request(request), { secrets: Object.values(headers) });
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
}
