import { casesOfContent } from './event-cases-of-content.ts';
import { casesOfPeople } from './event-cases-of-people.ts';
import type { EventCase } from './event-scenes.ts';

/**
 * Requests of the mutations whose events depend on more than the mutation, and of those without a route. A mutation
 * that is not here has one: what its route needs, see `prepared`. THE place to add one when an event that a mutation
 * may emit has no case.
 */
export const eventCases: Record<string, readonly EventCase[]> = { ...casesOfPeople, ...casesOfContent };

/** Events that a mutation may emit, and why no case shows them. Keep it short. */
export const withoutCase: Record<string, string> = {
  'finishSamlSignIn organization_member.updated': 'the same code as after finishOidcSignIn gives roles by groups',
  'finishSamlSignIn workspace_member.created': 'the same code as after finishOidcSignIn gives roles by groups',
  'finishSamlSignIn workspace_member.updated': 'the same code as after finishOidcSignIn gives roles by groups',
  'finishSamlSignIn workspace_member.deleted': 'the same code as after finishOidcSignIn gives roles by groups',
};
