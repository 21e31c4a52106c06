import { createHash, randomBytes } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { startTarget } from '../../support/target-server.ts';

type Json = Record<string, unknown>;

/** A key of the provider: how it signs, and what it publishes. */
export interface ProviderKey {
  kid: string;
  alg: string;
  privateKey: CryptoKey;
  publicJwk: JWK;
}

/** What the provider does differently with the next sign-in. */
export interface Misconduct {
  /** Members of the ID token; `undefined` leaves one out. */
  claims?: Json;
  /** The whole ID token, instead of a signed one. */
  idToken?: (claims: Json, signed: string) => string | Promise<string> | undefined;
  /** The key that signs. */
  key?: ProviderKey;
  /** The header of the ID token. */
  header?: Json;
  /** The answer of the user info endpoint. */
  userInfo?: { status?: number; body?: unknown };
  /** More or other members of the token answer. */
  answer?: Json;
  /** The status and the body of the token endpoint. */
  refusal?: { status: number; body: unknown; headers?: OutgoingHttpHeaders };
  /** Parameters of the way back; `undefined` leaves one out. */
  back?: Record<string, string | undefined>;
}

export async function newKey(kid: string, alg = 'RS256'): Promise<ProviderKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

/** What the servers of a process sign with, unless they are given other keys: making one takes as long as a test. */
let usual: Promise<ProviderKey> | undefined;

/** An OpenID provider on 127.0.0.1 that does what it is told, right or wrong. */
export type OpenIdServer = Awaited<ReturnType<typeof startOpenIdServer>>;

export async function startOpenIdServer() {
  usual ??= newKey('first');
  const first = await usual;
  const state = {
    clientId: 'the-client',
    clientSecret: `secret-${randomBytes(8).toString('hex')}`,
    /** Those that sign and are published. The first one signs. */
    keys: [first],
    /** Members of the configuration document. */
    metadata: {} as Json,
    /** Of the next sign-in. */
    misconduct: {} as Misconduct,
    account: { sub: 'ann-at-the-provider', email: 'ann@example.test', email_verified: true } as Json,
    /** How often the key set was read. */
    keyReads: 0,
    /** Codes that work more than once, for two nodes that do the same. */
    keepsCodes: false,
  };
  const codes = new Map<string, URLSearchParams>();
  const accounts = new Map<string, Json>();
  let url = '';
  const document = () => ({
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/keys`,
    userinfo_endpoint: `${url}/me`,
    id_token_signing_alg_values_supported: ['RS256', 'ES256', 'HS256', 'none'],
    token_endpoint_auth_methods_supported: ['client_secret_post'],
    ...state.metadata,
  });
  const idToken = async (asked: URLSearchParams, accessToken: string): Promise<string | undefined> => {
    const { misconduct, keys, account, clientId } = state;
    const key = misconduct.key ?? keys[0]!;
    const now = Math.floor(Date.now() / 1_000);
    const claims = {
      iss: url,
      aud: clientId,
      iat: now,
      exp: now + 300,
      nonce: asked.get('nonce'),
      at_hash: createHash('sha256').update(accessToken).digest().subarray(0, 16).toString('base64url'),
      ...account,
      ...misconduct.claims,
    };
    const signed = await new SignJWT(claims)
      .setProtectedHeader({ alg: key.alg, kid: key.kid, ...misconduct.header })
      .sign(key.privateKey);
    return misconduct.idToken ? misconduct.idToken(claims, signed) : signed;
  };
  const token = async (form: URLSearchParams): Promise<{ status: number; body: unknown }> => {
    const { misconduct } = state;
    if (misconduct.refusal) return misconduct.refusal;
    if (form.get('client_id') !== state.clientId || form.get('client_secret') !== state.clientSecret)
      return { status: 401, body: { error: 'invalid_client' } };
    const asked = codes.get(form.get('code') ?? '');
    if (!state.keepsCodes) codes.delete(form.get('code') ?? '');
    const proof = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (!asked || asked.get('code_challenge') !== proof || asked.get('redirect_uri') !== form.get('redirect_uri'))
      return { status: 400, body: { error: 'invalid_grant' } };
    const accessToken = randomBytes(16).toString('hex');
    accounts.set(accessToken, state.account);
    const body = {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: 60,
      id_token: await idToken(asked, accessToken),
      ...misconduct.answer,
    };
    return { status: 200, body };
  };
  const target = await startTarget(async ({ url: path, headers }, response, body) => {
    const send = (status: number, json: unknown, more: OutgoingHttpHeaders = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify(json));
    if (path === '/.well-known/openid-configuration') return send(200, document());
    if (path === '/keys') {
      state.keyReads += 1;
      return send(200, { keys: state.keys.map(({ publicJwk }) => publicJwk) });
    }
    if (path === '/me') {
      const { status, body: other } = state.misconduct.userInfo ?? {};
      const account = accounts.get((headers.authorization ?? '').replace('Bearer ', ''));
      return send(status ?? (account ? 200 : 401), other ?? account ?? {});
    }
    if (path === '/token') {
      const { status, body: json } = await token(new URLSearchParams(body));
      return send(status, json, state.misconduct.refusal?.headers);
    }
    const location = path?.startsWith('/authorize') ? authorize(`${url}${path}`).href : undefined;
    return location ? response.writeHead(302, { location }).end() : send(404, {});
  });
  url = `http://127.0.0.1:${target.port}`;
  /** The address to which the provider sends a browser that opened an authorization URL. */
  const authorize = (authorizationUrl: string): URL => {
    const asked = new URL(authorizationUrl).searchParams;
    const code = randomBytes(16).toString('hex');
    codes.set(code, asked);
    const back = new URL(asked.get('redirect_uri') ?? '');
    const parameters = { code, state: asked.get('state') ?? '', iss: url, ...state.misconduct.back };
    for (const [name, value] of Object.entries(parameters)) if (value !== undefined) back.searchParams.set(name, value);
    return back;
  };
  return Object.assign(state, {
    url,
    discoveryUrl: `${url}/.well-known/openid-configuration`,
    requests: target.requests,
    authorize,
    close: () => target.close(),
  });
}
