import type { AdapterPayload } from 'oidc-provider';
import { DEVICE_GRANT } from './client-document.ts';

/**
 * The command line of the service (`clients/cli`): a program of all organizations that nobody has to register. Its
 * identifier is no address, because a service may have many, or none with a name.
 */
export const COMMAND_LINE = 'urn:platform-management:command-line';

/** As oidc-provider knows it. It has no secret, and no address for answers: users let it in with the code it shows. */
export const commandLineClient: AdapterPayload = {
  client_id: COMMAND_LINE,
  client_name: 'Command line of this service',
  token_endpoint_auth_method: 'none',
  application_type: 'native',
  redirect_uris: [],
  grant_types: [DEVICE_GRANT, 'refresh_token'],
  response_types: [],
};

/** Whether a client is a shared program: it belongs to no organization, and each user says for which one it may act. */
export const isShared = (clientId: string): boolean => clientId === COMMAND_LINE || clientId.startsWith('https://');
