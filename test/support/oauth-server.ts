import { createHash, randomBytes } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { startTarget, type TargetServer } from './target-server.ts';

/** What the server does with one request: an answer, or none before `until` has resolved. */
export interface Misbehaviour {
  status?: number;
  body?: unknown;
  headers?: OutgoingHttpHeaders;
  /** Called before the answer, after the server has done what it was asked for. */
  until?: () => Promise<unknown>;
  /** Breaks the connection instead of answering. */
  breaks?: boolean;
  /** The request is done before the misbehaving answer: tokens are rotated. */
  afterwards?: boolean;
}

/** A small authorization server that rotates refresh tokens, and misbehaves on request. */
export interface OAuthServer extends Pick<TargetServer, 'port' | 'requests' | 'close'> {
  url: string;
  clientId: string;
  clientSecret: string;
  /** What a tool has to say about it. */
  service: Record<string, unknown>;
  /** A code that a user has got for this authorization URL. */
  consent(authorizationUrl: string): string;
  /** Requests of the token endpoint by grant type. */
  grants: Record<string, number>;
  /** Tokens that were revoked, in order. */
  revoked: string[];
  /** Refresh tokens that are valid. */
  refreshTokens: Set<string>;
  accessTokens: Set<string>;
  /** Seconds that access tokens live. */
  lifetime: number;
  /** The next requests of the token endpoint, in order. */
  misbehave: Misbehaviour[];
  /** All requests of the revocation endpoint. */
  revocation: Misbehaviour | null;
  /** More fields of the token answer. */
  more: Record<string, unknown>;
}

const newToken = (kind: string) => `${kind}-${randomBytes(12).toString('hex')}`;

interface Code {
  redirectUri: string;
  challenge: string | null;
  scope: string;
}

/** Starts the server on a free port of 127.0.0.1. */
export async function startOAuthServer({ port = 0 } = {}): Promise<OAuthServer> {
  const codes = new Map<string, Code>();
  const scopes = new Map<string, string>();
  const state = {
    clientId: 'the-client',
    clientSecret: newToken('client-secret'),
    grants: {} as Record<string, number>,
    revoked: [] as string[],
    refreshTokens: new Set<string>(),
    accessTokens: new Set<string>(),
    lifetime: 3_600,
    misbehave: [] as Misbehaviour[],
    revocation: null as Misbehaviour | null,
    more: {} as Record<string, unknown>,
  };
  const issue = (scope: string) => {
    const [access_token, refresh_token] = [newToken('access'), newToken('refresh')];
    state.accessTokens.add(access_token);
    state.refreshTokens.add(refresh_token);
    scopes.set(refresh_token, scope);
    return {
      access_token,
      refresh_token,
      token_type: 'Bearer',
      expires_in: state.lifetime,
      scope,
      ...state.more,
    };
  };
  const refuse = (error: string) => ({ status: 400, body: { error, error_description: `${error} it is` } });
  const grant = (form: URLSearchParams): { status: number; body: unknown } => {
    const isPublic = !form.has('client_secret');
    if (form.get('client_id') !== state.clientId || (!isPublic && form.get('client_secret') !== state.clientSecret))
      return { status: 401, body: { error: 'invalid_client' } };
    if (form.get('grant_type') === 'authorization_code') {
      const code = codes.get(form.get('code') ?? '');
      codes.delete(form.get('code') ?? '');
      const proof = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url');
      if (!code || code.redirectUri !== form.get('redirect_uri') || code.challenge !== proof)
        return refuse('invalid_grant');
      return { status: 200, body: issue(code.scope) };
    }
    const token = form.get('refresh_token') ?? '';
    if (!state.refreshTokens.delete(token)) return refuse('invalid_grant');
    return { status: 200, body: issue(scopes.get(token) ?? '') };
  };
  const consent = (authorizationUrl: string) => {
    const { searchParams } = new URL(authorizationUrl);
    const code = newToken('code');
    codes.set(code, {
      redirectUri: searchParams.get('redirect_uri') ?? '',
      challenge: searchParams.get('code_challenge'),
      scope: searchParams.get('scope') ?? '',
    });
    return code;
  };
  const target = await startTarget(
    async (request, response, body) => {
      const send = (status: number, json: unknown, headers: OutgoingHttpHeaders = {}) =>
        response
          .writeHead(status, { 'content-type': 'application/json', ...headers })
          .end(typeof json === 'string' ? json : JSON.stringify(json));
      const form = new URLSearchParams(body);
      if (request.url === '/revoke') {
        if (state.revocation) return send(state.revocation.status ?? 500, state.revocation.body ?? {});
        state.revoked.push(form.get('token') ?? '');
        state.refreshTokens.delete(form.get('token') ?? '');
        state.accessTokens.delete(form.get('token') ?? '');
        return send(200, {});
      }
      const asked = new URL(request.url ?? '', `http://${request.headers.host}`);
      if (asked.pathname === '/authorize') {
        const back = new URL(asked.searchParams.get('redirect_uri') ?? '');
        back.searchParams.set('code', consent(asked.href));
        back.searchParams.set('state', asked.searchParams.get('state') ?? '');
        return response.writeHead(302, { location: back.href }).end();
      }
      if (request.url === '/api') {
        const isKnown = state.accessTokens.has((request.headers.authorization ?? '').replace('Bearer ', ''));
        return send(isKnown ? 200 : 401, { isKnown });
      }
      const kind = form.get('grant_type') ?? '';
      state.grants[kind] = (state.grants[kind] ?? 0) + 1;
      const wrong = state.misbehave.shift();
      const usual = wrong && !wrong.afterwards && (wrong.status || wrong.breaks) ? null : grant(form);
      await wrong?.until?.();
      if (wrong?.breaks) return response.destroy();
      if (wrong?.status) return send(wrong.status, wrong.body ?? {}, wrong.headers);
      return send(usual!.status, usual!.body);
    },
    { port },
  );
  const url = `http://127.0.0.1:${target.port}`;
  return Object.assign(state, {
    url,
    port: target.port,
    requests: target.requests,
    close: () => target.close(),
    service: {
      name: 'oauth',
      type: 'oauth2',
      authorization_url: `${url}/authorize`,
      token_url: `${url}/token`,
      revocation_url: `${url}/revoke`,
      scopes: ['read', 'write'],
    },
    consent,
  });
}
