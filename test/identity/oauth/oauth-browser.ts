import * as client from 'openid-client';
import type { TestApp } from '../../support/app.ts';
import { type BrowserWithCookies, newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import type { Person } from '../../support/person.ts';

/** A program of an organization, as the service knows it. */
export interface RegisteredApplication {
  id: string;
  secret: string | null;
}

/** Where answers go in these tests: nobody listens there, because no browser goes on. */
export const CALLBACK = 'https://app.example.test/callback';

/** Registers an application of somebody's organization. */
export async function newApplication(
  owner: Person,
  input: Record<string, unknown> = {},
): Promise<RegisteredApplication> {
  const { status, body } = await owner.call<{ application: { application_id: string }; secret: string | null }>(
    'POST',
    `/v1/orgs/${owner.orgId}/applications`,
    { name: 'Notes', application_type: 'public', redirect_uris: [CALLBACK], ...input },
  );
  if (status !== 201) throw new Error(`The application was not made: ${status} ${JSON.stringify(body)}`);
  return { id: body.application.application_id, secret: body.secret };
}

/** A form of a page: where it goes and its fields, those that are chosen by default among them. */
export function formIn(text: string): URLSearchParams {
  const fields = new URLSearchParams();
  for (const [tag] of text.matchAll(/<input [^>]*>/g)) {
    const value = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1];
    const isLeftOut = value('type') === 'checkbox' && !/\schecked/.test(tag);
    if (value('name') && value('value') !== undefined && !isLeftOut) fields.append(value('name')!, value('value')!);
  }
  return fields;
}

/** Where a page goes on by itself. */
export const onwardIn = (text: string): string =>
  (/http-equiv="refresh" content="0;url=([^"]+)"/.exec(text)?.[1] ?? '').replaceAll('&amp;', '&');

/** Sends a form as a page of the service does. */
export const submit = (
  app: TestApp,
  browser: BrowserWithCookies,
  url: string,
  form: URLSearchParams,
  headers: Record<string, string> = {},
): Promise<Response> =>
  browser.send(url, { method: 'POST', body: form, headers: { origin: new URL(app.url).origin, ...headers } });

/** A browser in which somebody has signed in, by the form of the page without a script. */
export async function signedInBrowser(app: TestApp, person: Person): Promise<BrowserWithCookies> {
  const browser = newBrowserWithCookies();
  await signIn(app, browser, person);
  return browser;
}

export async function signIn(
  app: TestApp,
  browser: BrowserWithCookies,
  { username, password }: Pick<Person, 'username' | 'password'>,
): Promise<Response> {
  const url = `${app.url}/account/sign-in`;
  const form = formIn(await (await browser.send(url)).text());
  form.set('username', username);
  form.set('password', password);
  return submit(app, browser, url, form);
}

/** A peer of the authorization server. */
export async function peerOf(app: TestApp, { id, secret }: RegisteredApplication): Promise<client.Configuration> {
  const authentication = secret ? client.ClientSecretBasic(secret) : client.None();
  return client.discovery(new URL(`${app.url}/oauth`), id, undefined, authentication, {
    execute: [client.allowInsecureRequests],
  });
}

export interface Asked {
  url: URL;
  verifier: string;
  state: string;
}

/** An authorization request with PKCE. */
export async function ask(peer: client.Configuration, more: Record<string, string> = {}): Promise<Asked> {
  const verifier = client.randomPKCECodeVerifier();
  const state = client.randomState();
  const url = client.buildAuthorizationUrl(peer, {
    redirect_uri: CALLBACK,
    scope: 'read',
    state,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...more,
  });
  return { url, verifier, state };
}

/** Opens the request in the browser, up to the page that asks the user. */
export async function openConsent(
  app: TestApp,
  browser: BrowserWithCookies,
  url: URL,
): Promise<{ at: string; text: string }> {
  let at = url.href;
  for (let hops = 0; hops < 10; hops++) {
    const answer = await browser.send(at);
    const to = answer.headers.get('location');
    if (!to) return { at, text: await answer.text() };
    at = new URL(to, at).href;
    if (!at.startsWith(app.url)) return { at, text: '' };
  }
  throw new Error('The request goes round in circles.');
}

/** Opens the request in the browser and allows it. @returns where the application gets its answer */
export async function allow(
  app: TestApp,
  browser: BrowserWithCookies,
  url: URL,
  change: (form: URLSearchParams) => void = () => undefined,
): Promise<URL> {
  const { at, text } = await openConsent(app, browser, url);
  if (!at.startsWith(app.url)) return new URL(at);
  const form = formIn(text);
  form.set('decision', 'allow');
  change(form);
  const answer = await submit(app, browser, at, form);
  const page = await answer.text();
  const next = onwardIn(page);
  if (!next) throw new Error(`The consent was answered ${answer.status}: ${page}`);
  return browser.follow(next, CALLBACK);
}

/** All of it: the tokens that an application gets. */
export async function tokensOf(
  app: TestApp,
  browser: BrowserWithCookies,
  peer: client.Configuration,
  more: Record<string, string> = {},
  checks: client.AuthorizationCodeGrantChecks = {},
): Promise<client.TokenEndpointResponse & client.TokenEndpointResponseHelpers> {
  const { url, verifier, state } = await ask(peer, more);
  const back = await allow(app, browser, url);
  return client.authorizationCodeGrant(peer, back, { pkceCodeVerifier: verifier, expectedState: state, ...checks });
}

/** A call of the API with a token. */
export async function callWith(
  app: TestApp,
  token: string,
  method: 'GET' | 'POST' | 'PUT' | 'PATCH',
  url: string,
  payload?: object,
): Promise<{ status: number; body: unknown }> {
  const answer = await app.server.inject({
    method,
    url,
    headers: { authorization: `Bearer ${token}` },
    ...(payload && { payload }),
  });
  return { status: answer.statusCode, body: answer.body ? answer.json<unknown>() : null };
}
