import type { AccessToken, RefreshToken } from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  CLIENT,
  type ExampleOptions,
  type ExampleProvider,
  startExampleProvider,
} from '../../../scripts/example-provider.ts';
import type { TestApp } from '../../support/app.ts';
import { newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import { eventsOf, type Person, register } from '../../support/person.ts';
import { waitFor } from '../../support/wait.ts';
import { instancesOf } from '../tool-instances/instances.ts';
import { exchange, type Initiated, initiate, rowOf, shownBy, startConnectingApp } from './connecting.ts';
import { newOAuthInstance } from './oauth-instances.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startConnectingApp();
  await app.listen();
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

const callbackOf = () => `${app.url}/connections/callback`;

/** What the provider has granted, oldest first. */
interface Granted {
  access: AccessToken[];
  refresh: RefreshToken[];
}

/** Opens an authorization URL as a browser does, up to the page of the service. @returns the address of the page */
const authorize = (url: string): Promise<URL> => newBrowserWithCookies().follow(url, callbackOf());

async function withProvider(
  authentication: NonNullable<ExampleOptions['authentication']>,
  work: (running: { example: ExampleProvider; granted: Granted; service: object }) => Promise<void>,
): Promise<void> {
  const example = await startExampleProvider({ port: 0, callbackUrl: callbackOf(), authentication });
  const granted: Granted = { access: [], refresh: [] };
  example.provider.on('access_token.saved', (token) => void granted.access.push(token));
  example.provider.on('refresh_token.saved', (token) => void granted.refresh.push(token));
  const service = {
    name: 'oauth',
    type: 'oauth2',
    authorization_url: `${example.url}/auth`,
    token_url: `${example.url}/token`,
    revocation_url: `${example.url}/token/revocation`,
    scopes: ['read', 'write'],
    token_endpoint_auth_method: authentication,
  };
  try {
    await work({ example, granted, service });
  } finally {
    await example.close();
  }
}

describe('over a certified authorization server that demands PKCE and rotates refresh tokens', () => {
  test.each(['client_secret_post', 'client_secret_basic', 'none'] as const)(
    '%s: initiate, authorize, exchange, call, refresh twice, delete',
    (authentication) =>
      withProvider(authentication, async ({ example, granted, service }) => {
        const client = { id: CLIENT.id, secret: authentication === 'none' ? null : CLIENT.secret };
        const { instance_id: id } = await newOAuthInstance(ann, service, client, `${example.url}/api/me`);
        const base = `${ann.home}/connections`;
        const tryIt = async () => (await ann.call<object>('POST', `${instancesOf(ann)}/${id}/test`, {})).body;
        expect(await tryIt()).toMatchObject({ success: false, details: { code: 'no_credentials' } });

        const begun = await initiate(ann, base, id);
        const back = await authorize(begun.authorization_url);
        expect(back.searchParams.get('state')).toBe(begun.state);
        const done = await exchange(ann, back.searchParams.get('code')!, begun.state);
        expect([done.status, done.body]).toEqual([
          200,
          {
            status: 'connected',
            connection_id: begun.connection_id,
            tool_instance_id: id,
            scopes: ['read', 'write'],
            account_label: null,
            expires_at: expect.any(String),
          },
        ]);
        expect(await shownBy(app, id)).toBe('connected');
        expect(await tryIt()).toMatchObject({ success: true, details: { code: 'ok', status: 200 } });
        expect([granted.access.length, granted.refresh.length]).toEqual([1, 1]);

        for (const round of [1, 2]) {
          const refreshAt = new Date(0);
          await app.database.prisma.connection.update({ where: { id: begun.connection_id }, data: { refreshAt } });
          await app.services.connectionRefresh.refreshDue({ signal: new AbortController().signal });
          await waitFor(() => expect(granted.access.length).toBe(1 + round));
          await waitFor(async () => expect((await rowOf(app, begun.connection_id)).refreshClaim).toBeNull());
          const row = await rowOf(app, begun.connection_id);
          expect([row.status, row.lastError, row.refreshAt! > new Date()]).toEqual(['connected', null, true]);
        }
        // each refresh token was good for one refresh: a second use would have ended the whole grant
        const refreshTokens = await Promise.all(
          granted.refresh.map(({ jti }) => example.provider.RefreshToken.find(jti)),
        );
        expect(new Set(granted.refresh.map(({ jti }) => jti)).size).toBe(3);
        expect(refreshTokens.map((token) => Boolean(token && !token.consumed))).toEqual([false, false, true]);
        expect(await tryIt()).toMatchObject({ success: true });

        expect((await ann.call('DELETE', `${base}/${id}`)).status).toBe(200);
        await app.jobsDone();
        const { AccessToken: Access, RefreshToken: Refresh } = example.provider;
        expect(await Access.find(granted.access.at(-1)!.jti)).toBeUndefined();
        expect(await Refresh.find(granted.refresh.at(-1)!.jti)).toBeUndefined();
        expect(await tryIt()).toMatchObject({ success: false, details: { code: 'no_credentials' } });
        expect((await eventsOf(app, begun.connection_id)).at(-1)).toBe('connection.deleted');
      }),
  );

  test('a code belongs to the authorization that it was given for: no other verifier goes with it', () =>
    withProvider('client_secret_post', async ({ example, granted, service }) => {
      const make = () => newOAuthInstance(ann, service, CLIENT, `${example.url}/api/me`);
      const [one, other] = [await make(), await make()];
      const begin = async (id: string): Promise<Initiated> => initiate(ann, `${ann.home}/connections`, id);
      const [first, second] = [await begin(one.instance_id), await begin(other.instance_id)];
      const code = (await authorize(first.authorization_url)).searchParams.get('code')!;
      const answer = await exchange<{ detail: { loc: string[] }[] }>(ann, code, second.state);
      expect([answer.status, answer.body.detail[0]?.loc]).toEqual([422, ['query', 'code']]);
      expect(granted.access).toEqual([]);
      expect(await rowOf(app, second.connection_id)).toMatchObject({ status: 'pending', scopes: [] });
    }));

  test('a client secret that is wrong: the provider is quoted, and nothing is stored', () =>
    withProvider('client_secret_post', async ({ example, service }) => {
      const client = { id: CLIENT.id, secret: 'another' };
      const { instance_id: id } = await newOAuthInstance(ann, service, client, `${example.url}/api/me`);
      const begun = await initiate(ann, `${ann.home}/connections`, id);
      const code = (await authorize(begun.authorization_url)).searchParams.get('code')!;
      expect(await exchange(ann, code, begun.state)).toEqual({
        status: 502,
        body: {
          error: 'UPSTREAM_ERROR',
          message: "The provider 'tracker' answered invalid_client: client authentication failed",
          details: { upstream: 'tracker' },
          status_code: 502,
          timestamp: expect.any(String),
        },
      });
      const connectionId = begun.connection_id;
      expect(await app.database.prisma.credential.findUnique({ where: { connectionId } })).toBeNull();
    }));
});
