import { createHmac, randomBytes } from 'node:crypto';
import type { SecretValue } from '../../vault/secrets/envelope.ts';
import { OVERLAP_HOURS } from './webhook.words.ts';

/** The signing keys of a webhook: base64, as the vault keeps them. */
interface WebhookKeys {
  current: string;
  previous?: string;
  /** Until when the previous one signs as well, in ISO 8601. */
  previousUntil?: string;
}

const PREFIX = 'whsec_';
const KEY_BYTES = 32;

/** A new secret, in the form of Standard Webhooks. */
export const newSecret = (): string => PREFIX + randomBytes(KEY_BYTES).toString('base64');

/** What the vault keeps of a new secret. */
export const keysOf = (secret: string): SecretValue => ({ current: secret.slice(PREFIX.length) });

/** The same after a rotation: the secret before signs for a while as well. */
export function rotatedKeys(stored: SecretValue | null, secret: string, now = Date.now()): SecretValue {
  const before = stored as WebhookKeys | null;
  const until = new Date(now + OVERLAP_HOURS * 3_600_000).toISOString();
  return { ...keysOf(secret), ...(before && { previous: before.current, previousUntil: until }) };
}

/** The keys that sign now, the current one first. */
export function livingKeys(stored: SecretValue, now = Date.now()): string[] {
  const { current, previous, previousUntil } = stored as unknown as WebhookKeys;
  return previous && previousUntil && Date.parse(previousUntil) > now ? [current, previous] : [current];
}

/** What is signed. */
export interface Message {
  id: string;
  /** Seconds since 1970. */
  timestamp: number;
  body: string;
}

/** The headers of Standard Webhooks: a signature by each key. */
export function signatureHeaders({ id, timestamp, body }: Message, keys: readonly string[]): Record<string, string> {
  const signatures = keys.map((key) => {
    const mac = createHmac('sha256', Buffer.from(key, 'base64')).update(`${id}.${timestamp}.${body}`);
    return `v1,${mac.digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') };
}
