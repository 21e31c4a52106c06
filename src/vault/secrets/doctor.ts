import type { Prisma, PrismaClient } from '../../generated/prisma/client.ts';
import type { RootKeys } from '../../platform/keys/root-keys.ts';
import { attempt, openValue, type SealedVersion, unwrapKey, type WrappedKey } from './envelope.ts';

const BATCH = 100;

/** Something that cannot be opened. */
export interface VaultFinding {
  /** A secret, or a credential of a tool instance, a connection or a user. */
  secretId: string;
  /** Whose it is: an organization, or a user. */
  orgId: string;
  /** Null for the data key, and with it every version. */
  version: number | null;
  reason: string;
}

/** What was examined. A credential counts as a secret with one value. */
export interface Examined {
  secrets: number;
  versions: number;
}

const BATCH_TIMEOUT_MS = 120_000;

/**
 * Opens every value of the vault, including deleted secrets and all credentials, and reports each one that cannot be
 * opened. Reports contain nothing of a value. The services may keep running: each of their changes is seen completely
 * or not at all.
 */
export async function examine(
  prisma: PrismaClient,
  rootKeys: RootKeys,
  onFinding: (finding: VaultFinding) => void,
): Promise<Examined> {
  const examined = { secrets: 0, versions: 0 };
  for (const examineNext of [examineBatch, examineCredentials, examineUserCredentials]) {
    for (let after: string | null = ''; after !== null; ) {
      const from: string = after;
      // One snapshot for a secret and its versions: they are read separately, because many values would not fit in
      // memory.
      const batch = await prisma.$transaction((db) => examineNext(db, rootKeys, from), {
        isolationLevel: 'RepeatableRead',
        timeout: BATCH_TIMEOUT_MS,
      });
      examined.secrets += batch.secrets;
      examined.versions += batch.versions;
      for (const finding of batch.findings) onFinding(finding);
      after = batch.last;
    }
  }
  return examined;
}

interface ExaminedBatch extends Examined {
  findings: VaultFinding[];
  /** Id of the last examined secret; null if none was left. */
  last: string | null;
}

async function examineBatch(db: Prisma.TransactionClient, rootKeys: RootKeys, after: string): Promise<ExaminedBatch> {
  const secrets = await db.secret.findMany({
    where: { id: { gt: after } },
    orderBy: { id: 'asc' },
    take: BATCH,
    select: { id: true, orgId: true, rootKeyId: true, wrappedKey: true, vaultVersion: true },
  });
  const findings: VaultFinding[] = [];
  let values = 0;
  for (const secret of secrets) {
    const report = (version: number | null, reason: string) =>
      findings.push({ secretId: secret.id, orgId: secret.orgId, version, reason });
    const dataKey = attempt(
      () => unwrapKey(rootKeys, secret),
      ({ reason }) => report(null, reason),
    );
    const versions = await db.secretVersion.findMany({ where: { secretId: secret.id }, orderBy: { version: 'asc' } });
    for (const { version, ciphertext } of versions) {
      if (!ciphertext) continue; // destroyed: only the newest values are kept
      values++;
      if (dataKey)
        attempt(
          () => openValue(dataKey, secret, { version, ciphertext }),
          ({ reason }) => report(version, reason),
        );
    }
    if (!versions.some(({ version, ciphertext }) => version === secret.vaultVersion && ciphertext))
      report(secret.vaultVersion, 'has no ciphertext');
  }
  return { secrets: secrets.length, versions: values, findings, last: secrets.at(-1)?.id ?? null };
}

async function examineCredentials(
  db: Prisma.TransactionClient,
  rootKeys: RootKeys,
  after: string,
): Promise<ExaminedBatch> {
  const credentials = await db.credential.findMany({
    where: { id: { gt: after } },
    orderBy: { id: 'asc' },
    take: BATCH,
  });
  return openAll(rootKeys, credentials);
}

async function examineUserCredentials(
  db: Prisma.TransactionClient,
  rootKeys: RootKeys,
  after: string,
): Promise<ExaminedBatch> {
  const stored = await db.userCredential.findMany({
    where: { id: { gt: after } },
    orderBy: { id: 'asc' },
    take: BATCH,
  });
  return openAll(
    rootKeys,
    stored.map((row) => ({ ...row, orgId: row.userId })),
  );
}

function openAll(rootKeys: RootKeys, credentials: readonly (WrappedKey & SealedVersion)[]): ExaminedBatch {
  const findings: VaultFinding[] = [];
  for (const credential of credentials) {
    const { id, orgId } = credential;
    attempt(
      () => openValue(unwrapKey(rootKeys, credential), credential, credential),
      ({ reason }) => findings.push({ secretId: id, orgId, version: null, reason }),
    );
  }
  return { secrets: credentials.length, versions: credentials.length, findings, last: credentials.at(-1)?.id ?? null };
}
