import { authExchange } from '@urql/exchange-auth';
import { createClient as createSocket } from 'graphql-ws';
import { Client, type Exchange, fetchExchange, subscriptionExchange } from 'urql';
import { cache } from './cache';
import type { Session } from './session';

export const URL_OF_SERVICE = new URL('/graphql', location.href).href;

/** A client of a signed-in user, with a cache of its own: nobody sees what another user has read. */
export function clientOf(session: Session): { client: Client; close: () => void } {
  const socket = createSocket({
    url: URL_OF_SERVICE.replace(/^http/, 'ws'),
    // asked for each connection, so that a new one after a break carries a token that is good
    connectionParams: async () => ({ authorization: `Bearer ${await session.freshToken()}` }),
    retryAttempts: Number.POSITIVE_INFINITY,
  });
  const live = subscriptionExchange({
    forwardSubscription: ({ query, variables }) => ({
      subscribe: (sink) => ({
        unsubscribe: socket.subscribe(
          { query: query ?? '', ...(variables && { variables }) },
          { ...sink, next: ({ data = null, errors }) => sink.next({ data, ...(errors && { errors }) }) },
        ),
      }),
    }),
  });
  const exchanges = [cache(), authentication(session), fetchExchange, live];
  const client = new Client({ url: URL_OF_SERVICE, exchanges, preferGetMethod: false });
  return { client, close: () => void socket.dispose() };
}

const authentication = (session: Session): Exchange =>
  authExchange((utils) =>
    Promise.resolve({
      addAuthToOperation: (operation) =>
        utils.appendHeaders(operation, { authorization: `Bearer ${session.accessToken}` }),
      willAuthError: () => session.isStale,
      didAuthError: ({ graphQLErrors }) =>
        graphQLErrors.some(({ extensions }) => extensions.code === 'AUTHENTICATION_FAILED'),
      refreshAuth: () => session.refresh(),
    }),
  );
