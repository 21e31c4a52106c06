/**
 * What each session of the service has, as PostgreSQL prints it. Statements end after 30 s, waits for a lock after
 * 10 s, transactions that do nothing after 30 s and all others after a minute, because live events wait for them.
 */
export const SESSION_LIMITS: Readonly<Record<string, string>> = {
  // compiling a statement costs more than it saves where each takes milliseconds
  jit: 'off',
  statement_timeout: '30s',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '30s',
  // since PostgreSQL 17
  transaction_timeout: '1min',
  // a word of a search is found if two fifths of its trigrams are: that allows two letters that were swapped, which
  // the default of three fifths does not
  'pg_trgm.word_similarity_threshold': '0.4',
};

const WANTED = Object.entries(SESSION_LIMITS)
  .map(([name, value]) => `('${name}', '${value}')`)
  .join(', ');

/** Those that this server knows; extensions are loaded when they are first used. */
const KNOWN = `from (values ${WANTED}) wanted(name, value)
  where (name like '%.%' or name in (select s.name from pg_settings s))`;

/** Sets them for a session that nobody else gets, and asks whether its server follows another. */
export const SET_LIMITS = `select set_config(name, value, false), pg_is_in_recovery() as "isReplica" ${KNOWN}`;

/** The names of those that a session lacks. */
export const LACKING_LIMITS = `select name ${KNOWN} and current_setting(name, true) is distinct from value`;

/** Statements that make them what each later session of this role begins with in this database. */
export const LIMITS_OF_ROLE = `select format('alter role current_user in database %I set %s = %L',
    current_database(), name, value) as text ${KNOWN}`;

/** Lifts, within a transaction, those that a session of this role may have begun with. */
export const WITHOUT_TIMEOUTS = `select set_config(name, '0', true) from pg_settings where name in
  ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;
