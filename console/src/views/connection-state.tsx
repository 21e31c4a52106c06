import { t } from '../texts';

interface Connection {
  status: keyof typeof t.tools.status;
  lastError: string | null;
  missingScopes: readonly string[];
}

/** The state of a connection in a word. */
export function ConnectionTag({ status }: Pick<Connection, 'status'>) {
  const isNeutral = status === 'not_connected' || status === 'pending';
  const kind = status === 'connected' ? 'tag ok' : isNeutral ? 'tag' : 'tag bad';
  return <span className={kind}>{t.tools.status[status]}</span>;
}

/** The state of a connection with what is wrong with it. */
export function ConnectionState({ status, lastError, missingScopes }: Connection) {
  return (
    <>
      <ConnectionTag status={status} /> {lastError && <small className="clip">{lastError}</small>}
      {missingScopes.length > 0 && <small>{t.tools.missingScopes(missingScopes.join(', '))}</small>}
    </>
  );
}
