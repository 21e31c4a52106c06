import type { ActivityRowFragment } from '../generated/documents';
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

/** What a record is about, in words: the name of the thing, if it is still there. */
export function subjectOf({ resourceType, resource, resourceId }: ActivityRowFragment): string {
  const { name, version, email, username, app, environment }: Named = resource ?? {};
  if (environment) return `${app?.name ?? ''} → ${environment.name}`;
  const word = resourceType ? resourceType.replaceAll('_', ' ') : '';
  return `${word} ${name ?? version ?? email ?? username ?? resourceId ?? ''}`.trim();
}

/** What was done to it, as a sentence goes on after a name. */
export const didOf = (record: ActivityRowFragment): string =>
  // what failed was not done: its action is named, not told
  t.activity.did(record.success ? verbOf(record.action) : record.action.replaceAll('_', ' '), subjectOf(record));

/** An action in words; of one that the console does not know, the word of the service. */
export const verbOf = (action: string): string =>
  Object.hasOwn(t.activity.verbs, action)
    ? t.activity.verbs[action as keyof typeof t.activity.verbs]
    : action.replaceAll('_', ' ');

export const actorOf = ({ user, principalType }: ActivityRowFragment): string =>
  user?.username ?? principalType.replaceAll('_', ' ');

/** Why somebody did it, as they have said. */
export const reasonOf = ({ metadata: { reason } }: ActivityRowFragment): string | null =>
  typeof reason === 'string' ? reason : null;

export function Outcome({ record: { success, statusCode, errorCode } }: { record: ActivityRowFragment }) {
  return (
    <span className={success ? 'tag ok' : 'tag bad'}>
      {success ? t.activity.done : `${statusCode} ${errorCode ?? t.activity.failed}`}
    </span>
  );
}
