import { inBatches } from '../../data/batches.ts';
import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { DAYS_AFTER_EXPIRY } from './artifact.reads.ts';

/** A head. */
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

const DONE = `is_latest and promoted_to_source_id is not null
  and expires_at < now() - interval '${DAYS_AFTER_EXPIRY} days'`;
const PROMOTED = `select promoted_to_source_id as id, org_id as "orgId", workspace_id as "workspaceId"
  from artifacts where ${DONE} order by expires_at limit ${BATCH} for no key update skip locked`;

/**
 * Deletes the sources of artifacts that expired so long ago that they are removed: removing them first would delete the
 * sources without `source.deleted`. @returns the number of sources
 */
export const deleteSourcesOfExpired = (changes: Changes): Promise<number> =>
  inBatches(BATCH, () =>
    changes.run(systemCaller('retention'), async (tx) => {
      const sources = await tx.query<Omit<Expired, 'namespaceId'>>({ text: PROMOTED, values: [] });
      for (const source of sources) {
        tx.remove('sources', { id: source.id });
        emitChange(tx, 'deleted', 'source', { ...source, namespaceId: null });
      }
      return sources.length;
    }),
  );

/** The task that announces expiries within a second. */
export const expiryTask = (changes: Changes): Task =>
  scheduled(NAME, { everySeconds: 1, ifAny: `select 1 from artifacts where ${DUE}` }, () => announceExpired(changes));
