import { inBatches } from '../../data/batches.ts';
import type { Changes } from '../../data/changes.ts';
import { emitChange } from '../../data/record-change.ts';
import { statement } from '../../data/writes.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { scheduled, type Task } from '../../kernel/tasks.ts';
import { isLivePlace } from '../../tenancy/views.ts';
import { nextTime } from './next-time.ts';

interface Due {
  id: string;
  orgId: string;
  workspaceId: string;
  appId: string;
  augmentationId: string;
  cron: string;
  timezone: string;
  /** The time that was due, and that of the database. */
  scheduledFor: Date;
  now: Date;
  /** Whether its workspace and its organization are not deleted. */
  isLive: boolean;
}

const NAME = 'actions.fire';
const BATCH = 100;
const DUE = 'next_fire_at <= now()';

// a row that another node fires, or that is being changed, is not waited for
const TAKE = `select t.id, t.org_id as "orgId", t.workspace_id as "workspaceId", t.app_id as "appId",
    t.augmentation_id as "augmentationId", t.cron, t.timezone, t.next_fire_at as "scheduledFor", now() as now,
    ${isLivePlace('t.workspace_id')} as "isLive"
  from actions t where t.${DUE} order by t.next_fire_at limit ${BATCH} for no key update skip locked`;

/**
 * Emits `action.fired` once for each action whose time has come, and computes the next time. Times that were missed,
 * because no node was running, count as one. What is due is a column of the action: an action that was changed,
 * disabled or deleted has no times from before. Times pass unused in a deleted workspace: it may be restored.
 * @returns the number of actions
 */
export const fireDue = (changes: Changes): Promise<number> =>
  inBatches(BATCH, () =>
    changes.run(systemCaller(NAME), async (tx) => {
      const due = await tx.query<Due>({ text: TAKE, values: [] });
      if (due.length === 0) return 0;
      const rows = due.map(({ id, cron, timezone, now, isLive }) => ({
        id,
        fired: isLive ? now : null,
        next: nextTime(cron, timezone, now),
      }));
      tx.write(statement`update actions a
        set next_fire_at = r.next, last_fired_at = coalesce(r.fired, a.last_fired_at)
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) r(id text, fired timestamptz, next timestamptz)
        where a.id = r.id`);
      for (const action of due.filter(({ isLive }) => isLive))
        emitChange(tx, 'fired', 'action', action, {
          augmentation_id: action.augmentationId,
          scheduled_for: action.scheduledFor.toISOString(),
        });
      return due.length;
    }),
  );

/** The task that does so within a second, on one node at a time. */
export const firingTask = (changes: Changes): Task =>
  scheduled(NAME, { everySeconds: 1, ifAny: `select 1 from actions where ${DUE}` }, () => fireDue(changes));
