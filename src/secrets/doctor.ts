import type { PrismaClient } from '../generated/prisma/client.ts';
import type { RootKeys } from '../infra/root-keys.ts';
import { openValue, unwrapKey, VaultFault } from './envelope.ts';

const BATCH = 100;

/** Something that does not open. */
export interface Finding {
  secretId: string;
  orgId: string;
  /** Null: the data key, and with it every version. */
  version: number | null;
  reason: string;
}

/** What was looked at. */
export interface Examined {
  secrets: number;
  versions: number;
}

/** Opens every value of the vault, deleted secrets' too, and tells of each that does not open. Nothing of a value is told. */
export async function examine(
  prisma: PrismaClient,
  rootKeys: RootKeys,
  onFinding: (finding: Finding) => void,
): Promise<Examined> {
  const examined = { secrets: 0, versions: 0 };
  for (let after = ''; ; ) {
    // one statement: what a rotation does meanwhile is seen whole or not at all
    const secrets = await prisma.secret.findMany({
      where: { id: { gt: after } },
      orderBy: { id: 'asc' },
      take: BATCH,
      select: { id: true, orgId: true, rootKeyId: true, wrappedKey: true, vaultVersion: true },
    });
    if (secrets.length === 0) return examined;
    after = secrets.at(-1)!.id;
    for (const secret of secrets) {
      const versions = await prisma.secretVersion.findMany({
        // a version that was added since is of no interest: it was sealed a moment ago
        where: { secretId: secret.id, version: { lte: secret.vaultVersion } },
        orderBy: { version: 'asc' },
      });
      const report = (version: number | null, reason: string) =>
        onFinding({ secretId: secret.id, orgId: secret.orgId, version, reason });
      const dataKey = attempt(
        () => unwrapKey(rootKeys, secret),
        (reason) => report(null, reason),
      );
      examined.secrets++;
      for (const { version, ciphertext } of versions) {
        if (!ciphertext) continue; // older than the values that are kept
        examined.versions++;
        if (dataKey)
          attempt(
            () => openValue(dataKey, secret, { version, ciphertext }),
            (reason) => report(version, reason),
          );
      }
      if (!versions.some(({ version, ciphertext }) => version === secret.vaultVersion && ciphertext))
        report(secret.vaultVersion, 'has no ciphertext');
    }
  }
}

function attempt<T>(work: () => T, onFault: (reason: string) => void): T | null {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof VaultFault)) throw error;
    onFault(error.reason);
    return null;
  }
}
