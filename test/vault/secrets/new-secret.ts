import { expect } from 'vitest';
import type { SecretFragment } from '../../../rest/generated/documents.ts';
import type { Person } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

/** A secret as REST shows it. */
export type Secret = RestBody<SecretFragment> & { value?: Record<string, unknown> };

export interface SecretList {
  total: number;
  has_more: boolean;
  next_cursor: string | null;
  secrets: Secret[];
}

export interface Versions {
  secret_id: string;
  current_version: number;
  versions: { version: number; created_at: string; value: Record<string, unknown> | null }[];
}

export const VALUE = { user: 'ann', password: 'hunter2' };

export const secretsOf = ({ orgId }: { orgId: string }) => `/v1/orgs/${orgId}/secrets`;

let count = 0;

/** The body of a request that makes a secret. */
export const secretBody = (body: object = {}) => ({
  name: `secret-${++count}`,
  secret_type: 'token',
  value: VALUE,
  ...body,
});

/** Makes a secret. */
export async function newSecret(maker: Person, body: object = {}): Promise<Secret & { url: string }> {
  const answer = await maker.call<Secret>('POST', secretsOf(maker), secretBody(body));
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return { ...answer.body, url: `${secretsOf(maker)}/${answer.body.secret_id}` };
}
