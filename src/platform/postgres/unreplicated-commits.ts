import type pg from 'pg';

/** The function of PostgreSQL that warns; the text of its warning has the language of the server. */
const WARNS = 'SyncRepWaitForLSN';

// what the driver's types leave out
interface WithConnection {
  readonly connection: { emit(event: 'error', error: Error): void; readonly stream: { destroy(): void } };
}

/**
 * With synchronous replication a commit waits for a replica. When `statement_timeout` or somebody ends that wait,
 * PostgreSQL says that the commit is done, and only warns that the replica may lack it: a failover could lose what the
 * caller takes for kept. With this, such a commit fails, and its connection with it: nobody knows how it ends.
 */
export function refuseUnreplicated(client: pg.ClientBase): void {
  client.on('notice', ({ routine }) => {
    if (routine !== WARNS) return;
    const { connection } = client as unknown as WithConnection;
    const error = new Error('No replica has confirmed a commit: a failover may lose it.');
    // the statement fails before the driver reads that it is done
    connection.emit('error', Object.assign(error, { code: '08007' }));
    connection.stream.destroy();
  });
}
