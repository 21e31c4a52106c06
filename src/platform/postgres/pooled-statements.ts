import type pg from 'pg';

// what the driver's types leave out
interface WithConnection {
  readonly connection: { submittedNamedStatements: Record<string, string> };
}

/**
 * PgBouncer knows a prepared statement of a client from the moment that it is sent, also when the server refuses it
 * because its transaction has failed before. The driver forgets such a statement and would send it once more, at which
 * PgBouncer ends the connection. With this it never forgets one: PgBouncer prepares it where it is missing.
 */
export function rememberStatements(client: pg.ClientBase): void {
  (client as unknown as WithConnection).connection.submittedNamedStatements = new Proxy<Record<string, string>>(
    {},
    { deleteProperty: () => true },
  );
}
