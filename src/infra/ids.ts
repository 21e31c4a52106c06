import { uuidv7obj } from 'uuidv7';

/** Prefixes of identifiers, by resource word (defaults §0.2). */
export const idPrefixes = {
  organization: 'org',
  organization_member: 'om',
  invitation: 'inv',
  user: 'usr',
  session: 'ses',
  workspace: 'ws',
  workspace_member: 'wm',
  namespace: 'ns',
  app: 'app',
  release: 'rls',
  thread: 'thr',
  secret: 'sec',
  root_key: 'rk',
  api_token: 'tok',
  environment: 'env',
  deployment: 'dep',
  model: 'mdl',
  provider_account: 'pa',
  model_entitlement: 'ment',
  activity: 'act',
  event: 'evt',
} as const;

export type IdKind = keyof typeof idPrefixes;

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * A new identifier: the prefix of its kind and 26 base-32 characters of a UUIDv7, so that identifiers of one process rise
 * strictly and pages can be walked by key.
 */
export function newId(kind: IdKind): string {
  let rest = BigInt(`0x${uuidv7obj().toHex()}`);
  let text = '';
  for (let i = 0; i < 26; i++) {
    text = CROCKFORD[Number(rest & 31n)]! + text;
    rest >>= 5n;
  }
  return `${idPrefixes[kind]}_${text}`;
}

const kindOfPrefix = new Map<string, IdKind>(
  Object.entries(idPrefixes).map(([kind, prefix]) => [prefix, kind as IdKind]),
);

/** The resource word that an identifier's prefix stands for; `null` when there is none. */
export function kindOfId(id: string): IdKind | null {
  return kindOfPrefix.get(id.slice(0, id.lastIndexOf('_'))) ?? null;
}
