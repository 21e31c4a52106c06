import type { ActivityRowFragment } from '../generated/documents';
import { kindOf, wordOf } from '../ground/words';
import { t } from '../texts';

type Named = {
  app?: { name: string } | null;
  environment?: { name: string } | null;
  id?: string;
  name?: string;
  version?: string;
  email?: string;
  username?: string;
};

type Reported = keyof typeof t.activity.runs;

const isReport = ({ resourceType, action }: ActivityRowFragment) =>
  resourceType === 'execution' && action === 'execute';

/** What a report of a run says of it. The report itself has succeeded, whatever became of the run. */
function runIn(record: ActivityRowFragment) {
  const { status, timed_out: isTimedOut } = record.metadata;
  if (!record.success || !isReport(record) || typeof status !== 'string' || !Object.hasOwn(t.activity.runs, status))
    return null;
  return { status: status as Reported, isTimedOut: isTimedOut === true };
}

/** What a record is about, in words: the name of the thing, if it is still there. */
export function subjectOf({ resourceType, resource, resourceId }: ActivityRowFragment): string {
  const { name, version, email, username, app, environment }: Named = resource ?? {};
  if (environment) return `${app?.name ?? ''} → ${environment.name}`;
  const word = resourceType ? kindOf(resourceType) : '';
  return `${word} ${name ?? version ?? email ?? username ?? resourceId ?? ''}`.trim();
}

/** What was done to it, as a sentence goes on after a name. */
export function didOf(record: ActivityRowFragment): string {
  const { success, action } = record;
  const run = runIn(record);
  if (run) return t.activity.runs[run.status](subjectOf(record));
  if (success) return t.activity.did(verbOf(action), subjectOf(record));
  if (isReport(record)) return t.activity.refusedReport(subjectOf(record));
  return t.activity.tried(action.replaceAll('_', ' '), verbOf(action), subjectOf(record));
}

/** An action in words; of one that the console does not know, the word of the service. */
export const verbOf = (action: string): string => wordOf(t.activity.verbs, action);

export const actorOf = ({ user, principalType }: ActivityRowFragment): string =>
  user?.username ?? t.principals[principalType];

/** Why somebody did it, as they have said. */
export const reasonOf = ({ metadata: { reason } }: ActivityRowFragment): string | null =>
  typeof reason === 'string' ? reason : null;

/** Whether somebody may have to look at it: a request that failed, or a run. */
export const isBad = (record: ActivityRowFragment): boolean => !record.success || runIn(record)?.status === 'failed';

export function Outcome({ record }: { record: ActivityRowFragment }) {
  const { success, statusCode, errorCode } = record;
  const run = runIn(record);
  const kind = isBad(record) ? 'tag bad' : 'tag ok';
  if (!success)
    return (
      <>
        <span className={kind}>{t.activity.failed}</span>{' '}
        <small>
          <code>
            {statusCode} {errorCode}
          </code>
        </small>
      </>
    );
  // a record is of the past: what ran then is over by now
  const hasEnded = run && run.status !== 'running';
  const told = hasEnded && (run.isTimedOut ? t.apps.timedOut : t.apps.status[run.status]);
  return <span className={kind}>{told || t.activity.done}</span>;
}
