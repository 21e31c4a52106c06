import { newId } from '../../src/core/ids.ts';
import type { Prisma } from '../../src/generated/prisma/client.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import type { OAuthServer } from '../support/oauth-server.ts';
import { type Person, register } from '../support/person.ts';

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

/** A tool of an organization that connects to a server. */
export async function makeTool(app: TestApp, orgId: string, server: Pick<OAuthServer, 'service'>): Promise<string> {
  const id = newId('tool');
  await app.database.prisma.tool.create({
    data: {
      id,
      orgId,
      name: 'Mail',
      slug: `mail-${id.slice(-8).toLowerCase()}`,
      description: 'Sends mail.',
      connectionServiceName: 'mailer',
      supportsConnection: true,
      credentialSchema: [server.service] as Prisma.InputJsonArray,
    },
  });
  return id;
}

/** A tool instance, with the client that it has at a server. */
export async function makeInstance(
  app: TestApp,
  owner: Person,
  server: OAuthServer,
  given: { createdBy?: string; namespaceId?: string; toolId?: string; withoutClient?: boolean } = {},
): Promise<string> {
  const { orgId, workspaceId } = owner;
  const toolId = given.toolId ?? (await makeTool(app, orgId, server));
  const secret = await owner.call<{ secret_id: string }>('POST', `/v1/orgs/${orgId}/secrets`, {
    name: `client secret of ${newId('tool')}`,
    secret_type: 'oauth2',
    value: { client_secret: server.clientSecret },
  });
  const id = newId('tool_instance');
  await app.database.prisma.toolInstance.create({
    data: {
      id,
      orgId,
      workspaceId,
      toolId,
      name: 'Our mail',
      namespaceId: given.namespaceId ?? null,
      createdBy: given.createdBy ?? owner.userId,
      authMode: 'oauth2',
      ...(given.withoutClient ? {} : { clientId: server.clientId, clientSecretVaultId: secret.body.secret_id }),
    },
  });
  return id;
}

/** A person with an instance of a tool at the server. */
export async function withInstance(app: TestApp, server: OAuthServer) {
  const ann = await register(app, { name: 'ann' });
  const instanceId = await makeInstance(app, ann, server);
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
