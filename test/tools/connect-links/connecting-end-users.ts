import { randomBytes } from 'node:crypto';
import { formIn, onwardIn, submit } from '../../identity/oauth/oauth-browser.ts';
import type { TestApp } from '../../support/app.ts';
import { type BrowserWithCookies, newBrowserWithCookies } from '../../support/browser-with-cookies.ts';
import type { OAuthServer } from '../../support/oauth-server.ts';
import type { Person } from '../../support/person.ts';
import { makeClient } from '../../support/tool-instance.ts';
import { type Json, newInstance, newTool } from '../tool-instances/instances.ts';

export const RETURN_TO = 'https://app.example.test/done?tab=1';

/** The key of a tool, which goes into a header. */
export const KEY = { name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } };

/** An instance of a tool at the server, with a client there and an allowed return address. */
export async function makeOAuthInstance(maker: Person, server: OAuthServer, given: Json = {}): Promise<string> {
  const toolId = await newTool(maker, {
    name: 'Calendar',
    supports_connection: true,
    config_schema: [],
    credential_schema: [server.service],
    action_schemas: [{ name: 'me', method: 'GET', url_template: `${server.url}/api`, is_read_only: true }],
  });
  const { instance_id: id } = await newInstance(maker, toolId, {
    configuration: {},
    auth_mode: 'oauth2',
    connection_credentials: await makeClient(maker, server),
    ...given,
  });
  await allow(maker, id, [RETURN_TO]);
  return id;
}

/** An instance of a tool that takes keys, which keeps one itself. */
export async function makeKeyInstance(
  maker: Person,
  server: OAuthServer,
  given: Json = {},
  toolMaker = maker,
): Promise<string> {
  const toolId = await newTool(toolMaker, {
    name: 'Weather',
    supports_connection: true,
    config_schema: [],
    credential_schema: [KEY],
    action_schemas: [
      { name: 'me', method: 'GET', url_template: `${server.url}/api`, is_read_only: true },
      { name: 'drop', method: 'DELETE', url_template: `${server.url}/api`, is_destructive: true },
    ],
  });
  const { instance_id: id } = await newInstance(maker, toolId, {
    configuration: { api_key: 'key-of-the-instance' },
    ...given,
  });
  await allow(maker, id, [RETURN_TO]);
  return id;
}

export async function allow(maker: Person, instanceId: string, addresses: readonly string[]): Promise<void> {
  const url = `${maker.home}/tool-instances/${instanceId}/return-addresses`;
  const { status, body } = await maker.call('PUT', url, { addresses });
  if (status !== 200) throw new Error(JSON.stringify(body));
}

export const newEndUser = () => `user-${randomBytes(6).toString('hex')}`;

/** Makes a link. @returns its address */
export async function linkFor(maker: Person, instanceId: string, endUserId: string, more: Json = {}): Promise<string> {
  const { status, body } = await maker.call<{ url: string }>(
    'POST',
    `${maker.home}/tool-instances/${instanceId}/connect-links`,
    { end_user_id: endUserId, name: 'Eve End', return_to: RETURN_TO, ...more },
  );
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body.url;
}

/** Opens the page of a link, and sends its form. */
export async function goOn(
  app: TestApp,
  browser: BrowserWithCookies,
  link: string,
  fields: Record<string, string> = {},
): Promise<Response> {
  const form = formIn(await (await browser.send(link)).text());
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return submit(app, browser, `${app.url}/connect`, form);
}

/** Goes on to the provider. @returns its page */
export async function begin(app: TestApp, browser: BrowserWithCookies, link: string): Promise<string> {
  const answer = await goOn(app, browser, link);
  const to = onwardIn(await answer.text());
  if (answer.status !== 200 || to === '') throw new Error(`The page does not go on: ${answer.status}`);
  return to;
}

/** Where a provider sends the browser back to. */
export function back(app: TestApp, server: OAuthServer, authorizationUrl: string, code?: string): string {
  const state = new URL(authorizationUrl).searchParams.get('state') ?? '';
  const query = new URLSearchParams({ code: code ?? server.consent(authorizationUrl), state });
  return `${app.url}/connections/callback?${query.toString()}`;
}

/** Where the browser goes on to at the end. */
export async function endOf(answer: Response): Promise<URL> {
  const to = onwardIn(await answer.text());
  if (to === '') throw new Error(`Nothing goes on: ${answer.status}`);
  return new URL(to);
}

/** Connects an end user by OAuth. @returns the id of the connection */
export async function connectEndUser(
  app: TestApp,
  server: OAuthServer,
  maker: Person,
  { instanceId, endUserId }: { instanceId: string; endUserId: string },
): Promise<string> {
  const browser = newBrowserWithCookies();
  const at = await begin(app, browser, await linkFor(maker, instanceId, endUserId));
  const end = await endOf(await browser.send(back(app, server, at)));
  return end.searchParams.get('connection_id') ?? '';
}

/** Connects an end user with a key. @returns the id of the connection */
export async function connectByKey(
  app: TestApp,
  maker: Person,
  { instanceId, endUserId, key }: { instanceId: string; endUserId: string; key: string },
): Promise<string> {
  const link = await linkFor(maker, instanceId, endUserId);
  const end = await endOf(await goOn(app, newBrowserWithCookies(), link, { api_key: key }));
  return end.searchParams.get('connection_id') ?? '';
}
