import { Credentials } from '../vault/secrets/credentials.ts';
import { RevealService } from '../vault/secrets/reveal.service.ts';
import { RootKeyUses } from '../vault/secrets/root-key-uses.ts';
import { SecretReads } from '../vault/secrets/secret.reads.ts';
import { SecretService } from '../vault/secrets/secret.service.ts';
import { secretNotices } from '../vault/secrets/secret-notices.ts';
import { UserCredentials } from '../vault/secrets/user-credentials.ts';
import { Vault } from '../vault/secrets/vault.ts';
import type { Ground } from './ground.ts';

export type VaultGroup = ReturnType<typeof createVault>;

/** Secrets. What opens them is closed to resolvers. */
export function createVault({ deps, prisma, rootKeys, open: { onFault } }: Ground) {
  const { sql, changes } = deps;
  const vault = new Vault({ sql, changes, rootKeys });
  const secretReads = new SecretReads(deps);
  return {
    open: {
      secretReads,
      secrets: new SecretService({ ...deps, reads: secretReads, rootKeys, vault, onFault }),
      reveals: new RevealService({ ...deps, prisma, rootKeys, reads: secretReads, onFault }),
    },
    closed: {
      vault,
      rootKeyUses: new RootKeyUses({ sql, rootKeys }),
      credentials: new Credentials({ rootKeys }),
      userCredentials: new UserCredentials({ rootKeys }),
      secretNotices: secretNotices({ changes }),
    },
  };
}
