import { startTestApp, type TestApp } from '../../support/app.ts';
import type { OAuthServer } from '../../support/oauth-server.ts';
import { type Person, register } from '../../support/person.ts';
import { type GivenInstance, makeClient, makeInstance, makeTool } from '../../support/tool-instance.ts';

/** A connection as REST answers it. */
export interface Connection extends Record<string, unknown> {
  connection_id: string;
  status: string;
}

export interface Initiated {
  authorization_url: string;
  state: string;
  connection_id: string;
}

/** An app that may call the servers of the tests. */
export const startConnectingApp = (env: Record<string, string> = {}): Promise<TestApp> =>
  startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', ...env } });

/** An instance of a tool at a server, with a client of its own there. */
export async function makeInstanceAt(
  server: OAuthServer,
  maker: Person,
  given: Omit<GivenInstance, 'client'> = {},
): Promise<string> {
  const toolId = given.toolId ?? (await makeTool(maker, server.service));
  return makeInstance(maker, { ...given, toolId, client: await makeClient(maker, server) });
}

/** A person with an instance of a tool at the server. */
export async function withInstance(app: TestApp, server: OAuthServer) {
  const ann = await register(app, { name: 'ann' });
  const instanceId = await makeInstanceAt(server, ann);
  return { ann, instanceId, ofNamespace: `${ann.home}/namespaces/default/connections` };
}

/** Starts an authorization. @param base path of the connections */
export async function initiate(person: Person, base: string, instanceId: string): Promise<Initiated> {
  const { status, body } = await person.call<Initiated>('POST', `${base}/oauth/initiate`, {
    tool_instance_id: instanceId,
  });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
}

/** Finishes an authorization. */
export const exchange = <T = Record<string, unknown>>(person: Person, code: string, state: string) =>
  person.call<T>('POST', `/v1/connections/oauth/exchange?${new URLSearchParams({ code, state }).toString()}`);

/** Connects an instance for a namespace, or at another path. */
export async function connect(person: Person, server: OAuthServer, base: string, instanceId: string) {
  const begun = await initiate(person, base, instanceId);
  const { status, body } = await exchange<Connection>(person, server.consent(begun.authorization_url), begun.state);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
}

/** What is stored for a connection: its row. */
export const rowOf = (app: TestApp, id: string) => app.database.prisma.connection.findUniqueOrThrow({ where: { id } });

/** The state that an instance shows. */
export const shownBy = async (app: TestApp, instanceId: string): Promise<string> =>
  (await app.database.prisma.toolInstance.findUniqueOrThrow({ where: { id: instanceId } })).connectionStatus;
