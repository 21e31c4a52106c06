import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';

export const unique = () => randomBytes(6).toString('hex');

/** What answers have: resources, lists and errors. */
interface ScimBody {
  schemas: string[];
  id: string;
  userName: string;
  displayName: string;
  externalId: string;
  active: boolean;
  emails: unknown;
  name: unknown;
  groups: unknown;
  roles: unknown;
  role: unknown;
  members: { value: string }[];
  meta: { version: string; location: string };
  totalResults: number;
  itemsPerPage: number;
  Resources: { id: string; userName: string }[];
  status: string;
  scimType: string;
  detail: string;
}

export interface Answered {
  status: number;
  body: ScimBody;
  headers: Record<string, unknown>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An organization whose domain is proven, with a token for its directory. */
export interface Company {
  owner: Person;
  domain: string;
  providerId: string;
  token: string;
  tokenId: string;
  base: string;
  /** A request by SCIM. */
  scim: (method: Method, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answered>;
}

export const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group';
export const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';

/** The body of a PATCH. */
export const patch = (...operations: object[]) => ({ schemas: [PATCH], Operations: operations });

export async function newToken(who: Person, orgId = who.orgId): Promise<{ token: string; tokenId: string }> {
  const { status, body } = await who.call<{ scim_token: { scim_token_id: string }; plaintext_token: string }>(
    'POST',
    `/v1/orgs/${orgId}/scim-tokens`,
    { name: 'Directory' },
  );
  expect(status, JSON.stringify(body)).toBe(201);
  return { token: body.plaintext_token, tokenId: body.scim_token.scim_token_id };
}

/** A client of a directory. */
export const clientOf =
  (app: TestApp, base: string, token: string): Company['scim'] =>
  async (method, path, body, headers = {}) => {
    const answer = await app.server.inject({
      method,
      url: `${base}${path}`,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/scim+json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return {
      status: answer.statusCode,
      body: (answer.body === '' ? null : answer.json()) as ScimBody,
      headers: answer.headers,
    };
  };

/** @param fields of its identity provider */
export async function company(app: TestApp, fields: object = {}): Promise<Company> {
  const owner = await register(app, { name: 'owner' });
  const domain = `d${unique()}.example.test`;
  const { status, body } = await owner.call<{ idp_id: string }>('POST', `/v1/orgs/${owner.orgId}/identity-providers`, {
    name: 'Company',
    protocol: 'oidc',
    oidc_config: { client_id: 'c', discovery_url: 'https://idp.test' },
    verified_domains: [domain],
    ...fields,
  });
  expect(status, JSON.stringify(body)).toBe(201);
  await app.database.pool.query(
    `update identity_provider_domains set state = 'proven', proven_at = now() where domain = $1`,
    [domain],
  );
  const made = await newToken(owner);
  const base = `/scim/v2/${owner.orgId}`;
  return { owner, domain, providerId: body.idp_id, ...made, base, scim: clientOf(app, base, made.token) };
}

/** Somebody as Entra ID creates them, with what the service does not keep. */
export const entraUser = (userName: string, more: object = {}) => ({
  schemas: [USER, 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'],
  externalId: unique(),
  userName,
  active: true,
  displayName: 'Ann Example',
  emails: [{ primary: true, type: 'work', value: userName }],
  meta: { resourceType: 'User' },
  name: { formatted: 'Ann Example', familyName: 'Example', givenName: 'Ann' },
  roles: [],
  title: 'Head of tests',
  phoneNumbers: [{ type: 'mobile', value: '+1 555 0100' }],
  'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User': { department: 'Tests' },
  ...more,
});

/** Creates somebody. @returns the resource */
export async function provision({ scim, domain }: Company, more: object = {}) {
  const { status, body } = await scim('POST', '/Users', entraUser(`u${unique()}@${domain}`, more));
  expect(status, JSON.stringify(body)).toBe(201);
  return body as { id: string; userName: string; meta: { version: string } };
}

/** The account of somebody in a directory. */
export async function accountOf(app: TestApp, scimUserId: string): Promise<string> {
  const { userId } = await app.database.prisma.scimUser.findUniqueOrThrow({ where: { id: scimUserId } });
  expect(userId).not.toBeNull();
  return userId!;
}

/** The roles of a user in an organization and its workspaces. */
export async function rolesOf(app: TestApp, orgId: string, userId: string) {
  const { organizationMember, workspaceMember } = app.database.prisma;
  const member = await organizationMember.findUnique({ where: { orgId_userId: { orgId, userId } } });
  const rows = await workspaceMember.findMany({ where: { orgId, userId } });
  return { organization: member?.role ?? null, workspaces: rows.map(({ role }) => role) };
}
