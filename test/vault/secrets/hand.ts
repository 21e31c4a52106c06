import type { LightMyRequestResponse } from 'fastify';
import type { Person } from '../../support/person.ts';

/** Sends requests, and keeps the answers apart that may show the text. */
export interface Hand {
  owner: Person;
  /** May read secrets, but not reveal them. */
  member: Person;
  send: (
    as: Person,
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    payload?: object | string,
    headers?: Record<string, string>,
  ) => Promise<LightMyRequestResponse>;
  ask: (as: Person, query: string, variables?: Record<string, unknown>) => Promise<LightMyRequestResponse>;
  /** Makes requests whose answers must show the text. */
  shown: (work: () => Promise<LightMyRequestResponse>) => Promise<void>;
}
