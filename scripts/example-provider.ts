// `npm run example:provider`: an OAuth provider on this machine, to try connections with, and a small API behind it.
// Everybody who opens an authorization URL is signed in as Ann and grants what is asked for. Never expose it.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

/** A running provider. Its `Provider` tells tests what it grants and revokes. */
export interface ExampleProvider {
  /** `http://127.0.0.1:PORT` */
  url: string;
  provider: Provider;
  close(): Promise<void>;
}

/** What the provider knows of its only client. */
export interface ExampleOptions {
  /** 0 takes a free one. Default 9000. */
  port?: number;
  /** Where it sends users back to: the page of the service. */
  callbackUrl?: string;
  /** How the client authenticates. */
  authentication?: 'client_secret_basic' | 'client_secret_post' | 'none';
}

/** The only client and its secret. */
export const CLIENT = { id: 'example', secret: 'example-secret' } as const;
const ACCOUNT = 'ann';
const SCOPES = ['read', 'write'];

/** Starts a provider on 127.0.0.1. It forgets everything when it ends. */
export async function startExampleProvider({
  port = 9_000,
  callbackUrl = 'http://127.0.0.1:4000/connections/callback',
  authentication = 'client_secret_post',
}: ExampleOptions = {}): Promise<ExampleProvider> {
  let answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      const [name, message] = error instanceof Error ? [error.name, error.message] : ['Error', String(error)];
      json(response, 400, { error: name, message });
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const provider = new Provider(url, {
    clients: [
      {
        client_id: CLIENT.id,
        ...(authentication === 'none' ? {} : { client_secret: CLIENT.secret }),
        token_endpoint_auth_method: authentication,
        redirect_uris: [callbackUrl],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    scopes: SCOPES,
    pkce: { required: () => true },
    issueRefreshToken: () => true,
    rotateRefreshToken: () => true,
    ttl: {
      AccessToken: 3_600,
      AuthorizationCode: 60,
      Grant: 86_400,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: 600,
    },
    features: {
      devInteractions: { enabled: false },
      revocation: {
        enabled: true,
        allowedPolicy: (_context, client, token) => token.clientId === client.clientId,
      },
    },
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_context, { uid }) => `/sign-in/${uid}` },
    // nobody is asked for consent
    loadExistingGrant: async ({ oidc }) => {
      const grant = new provider.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! });
      const scope = oidc.params?.scope;
      if (typeof scope === 'string') grant.addOIDCScope(scope);
      await grant.save();
      return grant;
    },
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
  });
  const serve = provider.callback();
  answer = async (request, response) => {
    if (request.url === '/api/me') return me(provider, request, response);
    if (!request.url?.startsWith('/sign-in/')) return serve(request, response);
    return provider.interactionFinished(request, response, { login: { accountId: ACCOUNT } });
  };
  return {
    url,
    provider,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The API behind the provider: whose access token it is. */
async function me(provider: Provider, { headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const given = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1];
  const token = given ? await provider.AccessToken.find(given) : undefined;
  if (token?.isValid) json(response, 200, { account: token.accountId, scope: token.scope });
  else json(response, 401, { error: 'invalid_token' });
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

if (process.argv[1] === import.meta.filename) {
  const port = Number(process.env.PORT ?? 9_000);
  const callbackUrl = process.env.CALLBACK_URL;
  const { url } = await startExampleProvider({ port, ...(callbackUrl ? { callbackUrl } : {}) });
  console.log(`OAuth  ${url}/auth, ${url}/token and ${url}/token/revocation
API    ${url}/api/me
client ${CLIENT.id}, secret ${CLIENT.secret}, scopes ${SCOPES.join(' and ')}`);
}
