import { wordEnum } from '../../graphql/word-enum.ts';
import { type Protocol, protocols } from './identity-provider.reads.ts';

export const SsoProtocol = wordEnum<Protocol>(
  'SsoProtocol',
  'How a provider signs users in.',
  { saml: 'SAML 2.0.', oidc: 'OpenID Connect.' },
  protocols,
);
