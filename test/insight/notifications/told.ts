import { expect } from 'vitest';
import type { NotificationFragment } from '../../../rest/generated/documents.ts';
import type { Person } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

/** A notification as REST shows it. */
export type Shown = RestBody<NotificationFragment>;

export interface List {
  notifications: Shown[];
  total: number;
  unread_count: number;
  has_more: boolean;
  next_cursor: string | null;
}

export interface Counts {
  unread_count: number;
  by_category: { [category: string]: number };
}

/** The notifications of somebody, newest first. */
export async function listOf(who: Person, query = ''): Promise<List> {
  const { status, body } = await who.call<List>('GET', `/v1/notifications${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

export const countsOf = async (who: Person): Promise<Counts> =>
  (await who.call<Counts>('GET', '/v1/notifications/unread-count')).body;

/** What somebody was told of, newest first. */
export const eventsToldTo = async (who: Person): Promise<string[]> =>
  (await listOf(who)).notifications.map(({ source_event }) => source_event);

/** Mutes these categories, and no others. */
export const mute = (who: Person, muted_categories: readonly string[]) =>
  who.call('PUT', '/v1/notifications/preferences', { muted_categories });

/** An app with an environment, and a function that deploys a release of it. */
export async function deployable(who: Person, name = 'Shop') {
  const make = async (path: string, payload: object): Promise<object> => {
    const { status, body } = await who.call<object>('POST', `${who.home}${path}`, payload);
    expect(status, JSON.stringify(body)).toBe(201);
    return body;
  };
  const { app_id } = (await make('/apps', { name })) as { app_id: string };
  const { environment } = (await make('/environments', { name: 'Production', slug: 'production' })) as {
    environment: { environment_id: string };
  };
  const release = async (version: string) =>
    ((await make(`/apps/${app_id}/releases`, { version })) as { release_id: string }).release_id;
  return {
    appId: app_id,
    environmentId: environment.environment_id,
    release,
    deploy: async (as: Person, release_id: string): Promise<void> => {
      const url = `${who.home}/environments/${environment.environment_id}/deploy`;
      const { status, body } = await as.call('POST', url, { app_id, release_id });
      expect(status, JSON.stringify(body)).toBe(200);
    },
  };
}
