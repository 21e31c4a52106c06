import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../config.ts';
import { every } from '../platform/every.ts';
import { appSecret } from '../platform/keys/keys.ts';
import { Seal } from '../platform/keys/seal.ts';
import {
  advanceKey,
  differing,
  enterKeys,
  type MarkerName,
  readMarkers,
  type SharedKey,
  withMarkers,
} from '../platform/nodes/service-markers.ts';
import type { Database } from '../platform/postgres/database.ts';
import { SigningKeys } from './signing-keys.ts';

type KeySettings = Pick<Config, 'appSecret' | 'formerAppSecrets' | 'keysDir'>;

const ADVANCE_MS = 60_000;

const fingerprintOf = (secret: string): string => new Seal(Buffer.from(secret), 'marker').fingerprint('APP_SECRET');

const secretKey = (config: KeySettings): SharedKey => ({
  name: 'app_secret',
  current: fingerprintOf(appSecret(config)),
  former: config.formerAppSecrets.map(fingerprintOf),
});

function signingKey(fingerprints: readonly string[]): SharedKey {
  const [current = '', ...former] = fingerprints;
  return { name: 'signing_keys', current, former };
}

const KEYS_PAGE = 'docs/operate/keys.md';

/** What is another one, where it comes from, and what to do. Values are never named. */
function sentenceOf(others: readonly MarkerName[], { appSecret: given, keysDir }: KeySettings): string {
  const hasSecret = others.includes('app_secret');
  const what = [
    ...(hasSecret ? [`another APP_SECRET${given ? '' : ` (${path.join(keysDir, 'app.key')})`}`] : []),
    ...(others.includes('signing_keys') ? [`other signing keys in KEYS_DIR (${path.join(keysDir, 'jwt.json')})`] : []),
  ].join(' and ');
  const former = hasSecret ? 'name the former one in FORMER_APP_SECRETS, or ' : '';
  return (
    `This node has ${what} than the service over this database. Give all nodes the same; if the service is ` +
    `to have new keys, ${former}run \`npm run adopt -- keys\` here and restart the other nodes (${KEYS_PAGE}).`
  );
}

/**
 * Lets a node into the service over its database: nodes with different keys would refuse each other's tokens, cursors
 * and links. Root keys have their own check, by what they sealed.
 * @throws Error naming what is different
 */
export async function joinService(config: KeySettings, keys: SigningKeys, database: Database): Promise<void> {
  const others = await enterKeys(database, [secretKey(config), signingKey(keys.fingerprints())]);
  if (others.length > 0) throw new Error(sentenceOf(others, config));
}

/** Follows rotations of the signing keys, so that a node that starts much later knows its service again. */
export const followSigningKeys = (
  keys: SigningKeys,
  database: Database,
  onFault: (error: unknown) => void,
): (() => Promise<void>) =>
  every(ADVANCE_MS, async () => advanceKey(database.pool, signingKey(await keys.freshFingerprints())), onFault);

/**
 * Compares the keys of this node with those of the service. It makes no key.
 * @returns a sentence when they are others, `null` when they are not, `undefined` when nothing can be compared
 */
export async function compareKeys(config: KeySettings, database: Database): Promise<string | null | undefined> {
  const hasSecret = config.appSecret !== undefined || existsSync(path.join(config.keysDir, 'app.key'));
  const signing = SigningKeys.exist(config.keysDir) ? (await SigningKeys.open(config.keysDir)).fingerprints() : [];
  const keys = [...(hasSecret ? [secretKey(config)] : []), ...(signing.length > 0 ? [signingKey(signing)] : [])];
  const markers = await readMarkers(database.pool);
  if (keys.length === 0 || !markers.has('app_secret')) return undefined;
  const others = differing(markers, keys);
  return others.length > 0 ? sentenceOf(others, config) : null;
}

/** Makes the keys of this node those of the service: its other nodes must get them, too. */
export async function adoptKeys(config: KeySettings, database: Database): Promise<void> {
  const keys = await SigningKeys.open(config.keysDir);
  await withMarkers(database, async (_markers, set) => {
    for (const { name, current } of [secretKey(config), signingKey(keys.fingerprints())]) await set(name, current);
  });
}
