import { expect } from 'vitest';
import type { WorkspaceDocument } from '../../../src/pipelines/workspace-documents/workspace-document.ts';
import type { Answer, Person } from '../../support/person.ts';

export interface Exported {
  document: WorkspaceDocument & { requirements: { tools: string[]; models: string[]; secrets: string[] } };
  warnings: string[];
}

export interface Missing {
  kind: string;
  name: string | null;
  used_by: string[];
}

export interface Imported {
  message: string;
  made: { resource_type: string; key: string; resource_id: string | null }[];
  missing: Missing[];
  warnings: string[];
}

type Json = Record<string, unknown>;

export const exported = (who: Person, home = who.home) => who.call<Exported>('GET', `${home}/export`);
export const imported = (who: Person, home: string, body: object) => who.call<Imported>('POST', `${home}/import`, body);

/** Sends what must succeed. */
export async function sent<Body = Json>(who: Person, method: 'POST' | 'PUT', url: string, body: object): Promise<Body> {
  const answer: Answer<Body> = await who.call<Body>(method, url, body);
  expect(answer.status, `${url}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
  return answer.body;
}

export const orgOf = (who: Person): string => `/v1/orgs/${who.orgId}`;

/** A new workspace. @returns its address */
export async function newWorkspace(who: Person, name = 'Copy'): Promise<string> {
  const body = await sent<{ workspace_id: string }>(who, 'POST', `${orgOf(who)}/workspaces`, {
    organization_id: who.orgId,
    name,
  });
  return `${orgOf(who)}/workspaces/${body.workspace_id}`;
}

export async function newModel(who: Person, id: string): Promise<void> {
  await sent(who, 'POST', `${orgOf(who)}/model-catalog`, { logical_model_id: id, name: id });
}

export async function newSecret(who: Person, name: string): Promise<string> {
  const body = { name, secret_type: 'api_key', value: { api_key: 'k' } };
  return (await sent<{ secret_id: string }>(who, 'POST', `${orgOf(who)}/secrets`, body)).secret_id;
}

/** A tool of the organization itself, which takes any configuration and keeps one key. */
export async function newTool(who: Person, slug: string, more: object = {}): Promise<string> {
  const body = {
    name: slug,
    slug,
    description: 'Does it.',
    credential_schema: [{ name: 'api_key', type: 'string' }],
    ...more,
  };
  return (await sent<{ tool_id: string }>(who, 'POST', `${orgOf(who)}/tools`, body)).tool_id;
}

export async function newInstance(who: Person, home: string, tool_id: string, more: object = {}): Promise<string> {
  const body = { tool_id, name: 'Ours', ...more };
  return (await sent<{ instance_id: string }>(who, 'POST', `${home}/tool-instances`, body)).instance_id;
}

/** An app with one augmentation of one stage. @returns its address, and the augmentation */
export async function newApp(who: Person, home: string, steps: object[], more: object = {}) {
  const { app_id } = await sent<{ app_id: string }>(who, 'POST', `${home}/apps`, { name: 'Shop', ...more });
  const url = `${home}/apps/${app_id}`;
  const { augmentation_id } = await sent<{ augmentation_id: string }>(who, 'POST', `${url}/augmentations`, {
    name: 'Answers',
    stages: [{ name: 'Say', steps }],
  });
  return { url, app_id, augmentation_id };
}
