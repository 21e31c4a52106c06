import { randomBytes } from 'node:crypto';
import type { TestApp } from './app.ts';
import type { OAuthServer } from './oauth-server.ts';
import { type Account, caller, type Person } from './person.ts';

/** An OAuth service that nobody calls. */
const UNCALLED = {
  name: 'oauth',
  type: 'oauth2',
  authorization_url: 'https://provider.example.test/authorize',
  token_url: 'https://provider.example.test/token',
};

/** In place of a sign-in, for whoever has a key. */
const KEY = { name: 'api_key', type: 'secret', required: false };

/** Who makes something, and by which requests. */
type Maker = Pick<Person, 'call' | 'orgId' | 'home'>;

async function made<Key extends string>(maker: Maker, url: string, payload: object, key: Key): Promise<string> {
  const { status, body } = await maker.call<Record<Key, string>>('POST', url, payload);
  if (status !== 201) throw new Error(`${url}: ${status} ${JSON.stringify(body)}`);
  return body[key];
}

/**
 * A tool of the maker's organization. @param service its OAuth service, beside which it takes a key, or another
 * credential @param name in all texts
 */
export function makeTool(maker: Maker, service: object = UNCALLED, name = 'Mail'): Promise<string> {
  const isOAuth = 'type' in service && service.type === 'oauth2';
  const tool = {
    name,
    slug: `${name.toLowerCase()}-${randomBytes(4).toString('hex')}`,
    description: `${name} for all.`,
    connection_service_name: `${name.toLowerCase()}er`,
    supports_connection: true,
    credential_schema: isOAuth ? [service, KEY] : [service],
    action_schemas: [
      { name: 'get', parameters: [{ name: 'id' }] },
      // nothing is there
      { name: 'list', url_template: 'https://10.0.0.1/', pagination: { type: 'cursor' } },
    ],
  };
  return made(maker, `/v1/orgs/${maker.orgId}/tools`, tool, 'tool_id');
}

/** What is given of an instance; the rest is made up. */
export interface GivenInstance {
  /** Default: a tool with an OAuth service that nobody calls. */
  toolId?: string;
  name?: string;
  namespaceId?: string;
  /** `null` for none. */
  client?: { client_id: string; client_secret_vault_id?: string } | null;
}

/** An instance in the maker's workspace, which the maker may connect. @returns its id */
export async function makeInstance(maker: Maker, given: GivenInstance = {}): Promise<string> {
  const { client = { client_id: 'a-client' } } = given;
  const instance = {
    tool_id: given.toolId ?? (await makeTool(maker)),
    name: given.name ?? 'Our mail',
    namespace_id: given.namespaceId,
    auth_mode: 'oauth2',
    ...(client && { connection_credentials: client }),
  };
  return made(maker, `${maker.home}/tool-instances`, instance, 'instance_id');
}

/** The client that an instance has at a server, with its secret in a place of the maker's organization. */
export async function makeClient(maker: Maker, server: OAuthServer, place: { namespace_id?: string } = {}) {
  const secret = {
    name: `client secret ${randomBytes(4).toString('hex')}`,
    secret_type: 'oauth2',
    value: { client_secret: server.clientSecret },
    ...place,
  };
  const id = await made(maker, `/v1/orgs/${maker.orgId}/secrets`, secret, 'secret_id');
  return { client_id: server.clientId, client_secret_vault_id: id };
}

/** An instance of the owner of a world, with the world's marker in all texts. */
export async function makeMarkedInstance(
  app: TestApp,
  { marker, accounts }: { marker: string; accounts: { owner: Account } },
  service?: object,
): Promise<string> {
  const owner = caller(app, accounts.owner);
  const toolId = await makeTool(owner, service, marker);
  return makeInstance(owner, { toolId, name: `${marker} instance`, client: { client_id: `${marker}-client` } });
}
