import { systemCaller } from '../access/system-caller.ts';
import { scheduled, type Task } from '../core/tasks.ts';
import { inBatches } from '../data/batches.ts';
import type { Changes } from '../data/changes.ts';
import { emitChange } from '../data/record-change.ts';

interface Expired {
  id: string;
  orgId: string;
  workspaceId: string;
  namespaceId: string;
}

const NAME = 'artifacts.expire';
const BATCH = 200;
const DUE = `is_latest and deleted_at is null and expires_at is not null and expiry_noticed_at is null
  and expires_at <= now()`;

const TAKE = `update artifacts set expiry_noticed_at = now() where id in (
    select id from artifacts where ${DUE} order by expires_at limit ${BATCH} for no key update skip locked)
  returning id, org_id as "orgId", workspace_id as "workspaceId", namespace_id as "namespaceId"`;

/**
 * Emits `artifact.expired` once for each artifact whose lifetime has ended. What callers see changes by itself.
 * @returns the number of artifacts
 */
export const announceExpired = (changes: Changes): Promise<number> =>
  inBatches(BATCH, () =>
    changes.run(systemCaller(NAME), async (tx) => {
      const expired = await tx.query<Expired>({ text: TAKE, values: [] });
      for (const artifact of expired) emitChange(tx, 'expired', 'artifact', artifact);
      return expired.length;
    }),
  );

/** The task that does so within a second. */
export const expiryTask = (changes: Changes): Task =>
  scheduled(NAME, { everySeconds: 1, ifAny: `select 1 from artifacts where ${DUE}` }, () => announceExpired(changes));
