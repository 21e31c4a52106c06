import { setTimeout as delay } from 'node:timers/promises';
import { Prisma, type PrismaClient } from '../../generated/prisma/client.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';
import type { NamedKey } from '../../setting.ts';
import { attempt, unwrapKey, type VaultFault, type WrappedKey, wrapKey } from './envelope.ts';

const BATCH = 100;
/**
 * Passes over the secrets. A pass skips secrets that others have locked, and the next pass tries them again. The limit
 * ends the run even if a node keeps using an older key.
 */
const PASSES = 50;
const PAUSE_MS = 100;

/** Progress of a rewrap. */
export interface RewrapProgress {
  done: number;
  total: number;
}

/** Result of a rewrap. */
export interface RewrapResult {
  /** The root key that now wraps all data keys. */
  rootKeyId: string;
  rewrapped: number;
  /** Data keys that cannot be opened. They stay unchanged. */
  faults: VaultFault[];
  /** Older root keys that are no longer needed. */
  retired: string[];
  /** Older root keys that are still needed. */
  needed: string[];
}

/**
 * Wraps the data keys of all secrets, including deleted ones, and of all credentials, those of users too, with the
 * newest root key while services read and write. Each batch commits separately: after a crash the next run continues
 * with the rest. Values stay unchanged.
 */
export async function rewrap(
  prisma: PrismaClient,
  rootKeys: RootKeys,
  onProgress: (progress: RewrapProgress) => void,
): Promise<RewrapResult> {
  const root = rootKeys.newest;
  const progress = { done: 0, total: await countOthers(prisma, root.id) };
  let faults: VaultFault[] = [];
  for (let pass = 1; pass <= PASSES; pass++) {
    faults = [];
    for await (const batch of walk(prisma, rootKeys, root)) {
      faults.push(...batch.faults);
      progress.done += batch.rewrapped;
      // Services may still wrap secrets with an older key; these come on top.
      onProgress({ ...progress, total: Math.max(progress.total, progress.done) });
    }
    if ((await countOthers(prisma, root.id)) <= faults.length) break;
    await delay(PAUSE_MS);
  }
  const { retired, needed } = await retireOthers(prisma, root.id);
  return { rootKeyId: root.id, rewrapped: progress.done, faults, retired, needed };
}

interface RewrappedBatch {
  /** Id of the last examined secret; null if none was left. */
  last: string | null;
  rewrapped: number;
  faults: VaultFault[];
}

/** The tables whose rows have a data key of their own, and whose each row is. */
const TABLES = { secrets: 'org_id', credentials: 'org_id', user_credentials: 'user_id' } as const;
type RewrappedTable = keyof typeof TABLES;
const tableNames = Object.keys(TABLES) as RewrappedTable[];

/** How many data keys are wrapped by another root key. */
async function countOthers(prisma: PrismaClient, rootKeyId: string): Promise<number> {
  const where = { rootKeyId: { not: rootKeyId } };
  const counts = [
    prisma.secret.count({ where }),
    prisma.credential.count({ where }),
    prisma.userCredential.count({ where }),
  ];
  return (await Promise.all(counts)).reduce((sum, count) => sum + count);
}

async function* walk(prisma: PrismaClient, rootKeys: RootKeys, root: NamedKey): AsyncGenerator<RewrappedBatch> {
  for (const table of tableNames) {
    for (let after: string | null = ''; after !== null; ) {
      const from: string = after;
      const batch = await prisma.$transaction((db) => rewrapBatch(db, rootKeys, root, table, from));
      after = batch.last;
      if (after !== null) yield batch;
    }
  }
}

async function rewrapBatch(
  db: Prisma.TransactionClient,
  rootKeys: RootKeys,
  root: NamedKey,
  table: RewrappedTable,
  after: string,
): Promise<RewrappedBatch> {
  const secrets = await db.$queryRaw<WrappedKey[]>`
    select id, ${Prisma.raw(TABLES[table])} as "orgId", root_key_id as "rootKeyId", wrapped_key as "wrappedKey"
    from ${Prisma.raw(table)} where root_key_id <> ${root.id} and id > ${after}
    order by id limit ${BATCH} for no key update skip locked`;
  const faults: VaultFault[] = [];
  const ids: string[] = [];
  const keys: string[] = [];
  for (const secret of secrets) {
    const dataKey = attempt(
      () => unwrapKey(rootKeys, secret),
      (fault) => faults.push(fault),
    );
    if (!dataKey) continue;
    keys.push(Buffer.from(wrapKey(root, secret, dataKey)).toString('base64'));
    ids.push(secret.id);
  }
  if (ids.length > 0) {
    await rootKeys.lock((text, values) => db.$queryRawUnsafe(text, ...values), root);
    await db.$executeRaw`
      update ${Prisma.raw(table)} s set root_key_id = ${root.id}, wrapped_key = decode(u.key, 'base64')
      from unnest(${ids}::text[], ${keys}::text[]) u(id, key) where s.id = u.id`;
  }
  return { last: secrets.at(-1)?.id ?? null, rewrapped: ids.length, faults };
}

/** Removes the root keys that wrap nothing. A key that a service starts to use again at this moment stays. */
async function retireOthers(prisma: PrismaClient, newest: string): Promise<Pick<RewrapResult, 'retired' | 'needed'>> {
  const others = await prisma.rootKey.findMany({ where: { id: { not: newest } }, orderBy: { id: 'asc' } });
  const retired: string[] = [];
  const needed: string[] = [];
  for (const { id } of others) {
    try {
      const { count } = await prisma.rootKey.deleteMany({
        where: { id, secrets: { none: {} }, credentials: { none: {} }, userCredentials: { none: {} } },
      });
      (count > 0 ? retired : needed).push(id);
    } catch (error) {
      if (!isReferenced(error)) throw error;
      needed.push(id);
    }
  }
  return { retired, needed };
}

const isReferenced = (error: unknown): boolean =>
  error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2003';
