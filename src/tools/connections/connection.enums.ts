import { wordEnum } from '../../graphql/word-enum.ts';
import type { AuthType, ConnectionStatus } from './connection-state.ts';

export const ConnectionAuthType = wordEnum<AuthType>(
  'ConnectionAuthType',
  'What kind of credential a connection has.',
  {
    oauth2: 'OAuth tokens.',
    api_key: 'An API key.',
  },
);

export const ConnectionStatusEnum = wordEnum<ConnectionStatus | 'not_connected' | 'revoked'>(
  'ConnectionStatus',
  'Status of a connection, or of what has none.',
  {
    not_connected: 'There is no connection.',
    pending: 'An authorization is not finished yet: for ten minutes at most.',
    connected: 'It can be used.',
    expired: 'The access token has ended and is not refreshed yet. This is tried again.',
    needs_reauth: 'The provider no longer accepts the refresh token or the API key: a user must authorize again.',
    error:
      'The access token has ended, and refreshing it failed several times; or the provider refuses an access token ' +
      'that is new. This is tried again.',
    revoked: 'Kept for connections that were revoked: they are deleted, so there are none.',
  },
);
