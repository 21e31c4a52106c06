import { type Exchange, makeOperation } from 'urql';
import { pipe, tap } from 'wonka';
import { isPassing } from './passing';

/**
 * Sends a query again that was under way when an event came: its answer may be older than the event, and the client
 * itself drops what is asked while the same query is under way. What did not come cannot be older.
 */
export const repeatOvertaken: Exchange =
  ({ client, forward }) =>
  (operations) => {
    const underWay = new Map<number, { isOvertaken: boolean }>();
    const sent = tap(({ kind, key }: Parameters<typeof client.reexecuteOperation>[0]) => {
      if (kind === 'query') underWay.set(key, { isOvertaken: false });
      else if (kind === 'teardown') underWay.delete(key);
    });
    return pipe(
      forward(sent(operations)),
      tap(({ operation, data, error }) => {
        const { kind, key, context } = operation;
        if (kind === 'subscription') for (const query of underWay.values()) query.isOvertaken = true;
        const query = underWay.get(key);
        underWay.delete(key);
        if (!query?.isOvertaken || (!data && error && isPassing(error))) return;
        const again = makeOperation('query', operation, { ...context, requestPolicy: 'network-only' });
        // when the client has taken this answer
        setTimeout(() => client.reexecuteOperation(again));
      }),
    );
  };
