import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allow, CALLBACK, callWith, newApplication, signedInBrowser } from '../identity/oauth/oauth-browser.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';

let app: TestApp;
let ann: Person;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
  await register(app, { name: 'operator' });
  ann = await register(app, { name: 'ann' });
});
afterAll(() => app.close());

/** What an MCP client keeps between its steps. */
class Kept implements OAuthClientProvider {
  readonly redirectUrl = CALLBACK;
  readonly clientMetadata = { client_name: 'Helper', redirect_uris: [CALLBACK], scope: 'read' };
  asked: URL | null = null;
  given: StoredOAuthTokens | undefined;
  #verifier = '';
  readonly #clientId: string;
  constructor(clientId: string) {
    this.#clientId = clientId;
  }
  state = () => 'a-state-of-its-own';
  clientInformation = () => ({ client_id: this.#clientId });
  tokens = () => this.given;
  saveTokens = (tokens: StoredOAuthTokens) => {
    this.given = tokens;
  };
  redirectToAuthorization = (url: URL) => {
    this.asked = url;
  };
  saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier;
  };
  codeVerifier = () => this.#verifier;
  #discovered: OAuthDiscoveryState | undefined;
  saveDiscoveryState = (state: OAuthDiscoveryState) => {
    this.#discovered = state;
  };
  discoveryState = () => this.#discovered;
}

const transportOf = (authProvider: OAuthClientProvider) =>
  new StreamableHTTPClientTransport(new URL(`${app.url}/mcp`), { authProvider });
const newClient = () => new Client({ name: 'a-peer', version: '1.0.0' });

/** Is turned away, and asks its user. @returns the address to which the browser brings the answer */
async function askedBy(kept: Kept): Promise<{ transport: StreamableHTTPClientTransport; back: URL }> {
  const transport = transportOf(kept);
  await expect(newClient().connect(transport)).rejects.toBeInstanceOf(UnauthorizedError);
  const browser = await signedInBrowser(app, ann);
  return { transport, back: await allow(app, browser, kept.asked!) };
}

test('the client of the MCP SDK finds its way from a refusal to a token, uses it and refreshes it', async () => {
  const kept = new Kept((await newApplication(ann)).id);
  const { transport, back } = await askedBy(kept);
  expect(Object.fromEntries(kept.asked!.searchParams)).toMatchObject({
    code_challenge_method: 'S256',
    resource: `${app.url}/mcp`,
    scope: 'read write',
  });
  await transport.finishAuth(back.searchParams);
  const client = newClient();
  await client.connect(transportOf(kept));
  expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  await client.close();
  // the token is for this resource alone
  expect((await callWith(app, kept.given!.access_token, 'GET', ann.home)).status).toBe(401);

  const first = kept.given!;
  kept.given = { ...first, access_token: 'gone' };
  const again = newClient();
  await again.connect(transportOf(kept));
  expect((await again.listTools()).tools.length).toBeGreaterThan(0);
  await again.close();
  expect(kept.given.refresh_token).not.toBe(first.refresh_token);
});

test('it takes no answer of another server', async () => {
  const kept = new Kept((await newApplication(ann)).id);
  const { transport, back } = await askedBy(kept);
  back.searchParams.set('iss', 'https://evil.example');
  await expect(transport.finishAuth(back.searchParams)).rejects.toThrow(/iss/i);
  expect(kept.given).toBeUndefined();
});
