import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Person } from '../../support/person.ts';
import { type Instance, type Json, newInstance, newTool } from '../tool-instances/instances.ts';

/** A client that an instance has at a provider. */
export interface Client {
  id: string;
  /** `null` for a public client. */
  secret: string | null;
}

/** A tool with an OAuth service and one action, made over REST as a person would, and an instance with a client. */
export async function newOAuthInstance(
  person: Person,
  service: object,
  client: Client,
  apiUrl: string,
  action: Json = {},
): Promise<Instance> {
  const toolId = await newTool(person, {
    name: 'Tracker',
    connection_service_name: 'tracker',
    supports_connection: true,
    config_schema: [],
    credential_schema: [service],
    action_schemas: [{ name: 'me', method: 'GET', url_template: apiUrl, is_read_only: true, ...action }],
  });
  const reference = client.secret === null ? null : await secretOf(person, client.secret);
  return newInstance(person, toolId, {
    configuration: {},
    auth_mode: 'oauth2',
    connection_credentials: { client_id: client.id, client_secret_vault_id: reference },
  });
}

async function secretOf(person: Person, client_secret: string): Promise<string> {
  const { status, body } = await person.call<{ secret_id: string }>('POST', `/v1/orgs/${person.orgId}/secrets`, {
    name: `tracker ${randomUUID()}`,
    secret_type: 'oauth2',
    value: { client_secret },
  });
  expect(status, JSON.stringify(body)).toBe(201);
  return body.secret_id;
}
