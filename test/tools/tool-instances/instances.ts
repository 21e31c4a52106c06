import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { Person } from '../../support/person.ts';

/** What is given of a tool, over what every one has here. */
export type GivenTool = Record<string, unknown>;
export type Json = Record<string, unknown>;
export type Instance = Json & { instance_id: string };

/** Fields of each kind, one of them sensitive. */
export const configSchema = [
  { name: 'base_url', display_name: 'Base URL', type: 'string', required: true, validation: { pattern: '^https?://' } },
  { name: 'region', type: 'string', default: 'eu', options: [{ value: 'eu', label: 'Europe' }, { value: 'us' }] },
  { name: 'retries', type: 'integer', validation: { min_value: 0, max_value: 5 } },
  { name: 'ratio', type: 'number', validation: { enum: [0.5, 1] } },
  { name: 'verbose', type: 'boolean' },
  { name: 'labels', type: 'array', validation: { max_items: 2, enum: ['a', 'b', 'c'] } },
  { name: 'headers', type: 'object' },
  { name: 'token', type: 'string', widget: 'password', validation: { min_length: 3 } },
];

/** Adds a tool to the person's organization. @returns its id */
export async function newTool(person: Person, given: GivenTool = {}): Promise<string> {
  const { status, body } = await person.call<{ tool_id: string }>('POST', `/v1/orgs/${person.orgId}/tools`, {
    name: 'Tickets',
    slug: `tickets-${randomBytes(4).toString('hex')}`,
    description: 'Reads tickets.',
    category: 'productivity',
    icon_url: 'https://tickets.test/icon.png',
    supported_step_types: ['tool'],
    config_schema: configSchema,
    credential_schema: [{ name: 'api_key', type: 'secret', placement: { in: 'header', name: 'x-api-key' } }],
    action_schemas: [
      { name: 'get', description: 'Reads one.', parameters: [{ name: 'id', required: true }, { name: 'lang' }] },
      { name: 'drop', description: 'Removes one.', method: 'DELETE', is_destructive: true },
    ],
    custom_action_type: 'custom_rest',
    ...given,
  });
  expect(status, JSON.stringify(body)).toBe(201);
  return body.tool_id;
}

/** Path of the instances of a person's workspace. */
export const instancesOf = (person: Person) => `${person.home}/tool-instances`;

/** Makes an instance of a tool. */
export async function newInstance(person: Person, toolId: string, given: Json = {}): Promise<Instance> {
  const { status, body } = await person.call<Instance>('POST', instancesOf(person), {
    tool_id: toolId,
    name: 'Tickets of the support',
    configuration: { base_url: 'https://tickets.test' },
    ...given,
  });
  expect(status, JSON.stringify(body)).toBe(201);
  return body;
}

/** Where each issue of a refusal is, and its type. */
export const placesOf = (body: unknown) =>
  (body as { detail: { type: string; loc: (string | number)[] }[] }).detail.map(({ loc, type }) => [
    loc.slice(1).join('.'),
    type,
  ]);
