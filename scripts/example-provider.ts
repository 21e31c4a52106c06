// `npm run example:provider`: an OAuth and OpenID provider on this machine, to try connections and sign-in with, a
// small API behind it, and a SAML identity provider. Everybody who opens an authorization URL is signed in, as the
// address that the service names or as Ann, and grants what is asked for. Never expose it.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider, { errors } from 'oidc-provider';
import { newExampleSaml } from './example-saml.ts';

/** A running provider. Its `Provider` tells tests what it grants and revokes. */
export interface ExampleProvider {
  /** `http://127.0.0.1:PORT`, which is also its issuer. */
  url: string;
  readonly provider: Provider;
  /** Signs with a new key from now on, and publishes only that one. `provider` is another one then. */
  rotateKey(): Promise<void>;
  close(): Promise<void>;
}

/** What the provider knows of its only client. */
export interface ExampleOptions {
  /** 0 takes a free one. Default 9000. */
  port?: number;
  /** Where it sends users back to: the page of the service for connections. Sign-ins go to the same origin. */
  callbackUrl?: string;
  /** How the client authenticates. */
  authentication?: 'client_secret_basic' | 'client_secret_post' | 'none';
  /** Tokens are for this resource alone (RFC 8707), whose requests must name it. */
  resource?: string;
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
  resource,
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
  const cookieKey = randomBytes(32).toString('hex');
  // a provider takes keys only when it is made; what it has granted is in the memory of its module
  const newProvider = async () => {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    const made: Provider = new Provider(url, {
      clients: [
        {
          client_id: CLIENT.id,
          ...(authentication === 'none' ? {} : { client_secret: CLIENT.secret }),
          token_endpoint_auth_method: authentication,
          redirect_uris: [callbackUrl, new URL('/v1/auth/sso/callback/oidc', callbackUrl).href],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
        },
      ],
      scopes: ['openid', ...SCOPES],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      pkce: { required: () => true },
      issueRefreshToken: () => true,
      rotateRefreshToken: () => true,
      ttl: {
        AccessToken: 3_600,
        AuthorizationCode: 60,
        Grant: 86_400,
        IdToken: 600,
        Interaction: 600,
        RefreshToken: 86_400,
        Session: 600,
      },
      features: {
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: resource !== undefined,
          useGrantedResource: () => false,
          getResourceServerInfo: (_context, indicator) => {
            if (indicator !== resource) throw new errors.InvalidTarget();
            return { scope: SCOPES.join(' '), audience: indicator, accessTokenFormat: 'opaque' };
          },
        },
        revocation: {
          enabled: true,
          allowedPolicy: (_context, client, token) => token.clientId === client.clientId,
        },
      },
      findAccount: (_context, accountId) => ({ accountId, claims: () => claimsOf(accountId) }),
      interactions: { url: (_context, { uid }) => `/sign-in/${uid}` },
      // nobody is asked for consent
      loadExistingGrant: async ({ oidc }) => {
        const grant = new made.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! });
        const scope = oidc.params?.scope;
        if (typeof scope === 'string') {
          grant.addOIDCScope(scope);
          if (resource !== undefined) grant.addResourceScope(resource, scope);
        }
        await grant.save();
        return grant;
      },
      jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }] },
      cookies: { keys: [cookieKey] },
    });
    return { made, serve: made.callback() };
  };
  let current = await newProvider();
  const saml = newExampleSaml(url, new URL('/v1/auth/sso/callback/saml', callbackUrl).href);
  answer = async (request, response) => {
    const { made, serve } = current;
    if (request.url === '/api/me') return me(made, request, response);
    if (request.url?.startsWith('/saml/')) return saml.answer(new URL(request.url, url), response);
    if (!request.url?.startsWith('/sign-in/')) return serve(request, response);
    const { params } = await made.interactionDetails(request, response);
    const accountId = typeof params.login_hint === 'string' ? params.login_hint : ACCOUNT;
    return made.interactionFinished(request, response, { login: { accountId } });
  };
  return {
    url,
    get provider() {
      return current.made;
    },
    rotateKey: async () => {
      current = await newProvider();
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** What the provider says of an account: it vouches for every address. */
const claimsOf = (accountId: string) => ({
  sub: accountId,
  name: accountId.split('@', 1)[0],
  ...(accountId.includes('@') ? { email: accountId, email_verified: true } : {}),
});

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
OpenID ${url}
SAML   ${url}/saml, ${url}/saml/sign-in and ${url}/saml/certificate
client ${CLIENT.id}, secret ${CLIENT.secret}, scopes ${SCOPES.join(' and ')}`);
}
