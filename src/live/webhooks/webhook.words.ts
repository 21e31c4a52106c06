import { isEventName, isOn, wordOf } from '../../kernel/event-types.ts';
import { declarationOf, type ResourceWord } from '../../kernel/resources.ts';

/** Webhooks of an organization itself, and of each workspace. */
export const MAX_WEBHOOKS = 20;
/** Selected types of one webhook. */
export const MAX_TYPES = 100;
/** Days that the log of deliveries goes back. */
export const LOG_DAYS = 7;
/** Deliveries that one request puts into the queue again. */
export const MAX_REDELIVERED = 10_000;
/** How long the secret before a rotation still signs as well. */
export const OVERLAP_HOURS = 24;

export const deliveryStatuses = ['pending', 'delivered', 'failed'] as const;

/** The type of what a test sends. It is no event, so nobody selects it. */
export const TEST_TYPE = 'webhook.test';

/** The resource of a selected type: exact, or `<resource>.*`. */
const selectedWord = (name: string): ResourceWord | undefined =>
  name.endsWith('.*') ? (name.slice(0, -2) as ResourceWord) : wordOf(name);

const typesOf = (name: string, word: ResourceWord): readonly string[] =>
  name.endsWith('.*') ? (declarationOf(word).events ?? []).map((event) => `${word}.${event}`) : [name];

/** What is wrong with a type for a webhook of a workspace, or of an organization itself; `null` for nothing. */
export function typeProblem(name: string, isOfWorkspace: boolean): string | null {
  if (!isEventName(name))
    return `there is no event called ${JSON.stringify(name)}: name a type like 'thread.created', or 'thread.*'`;
  const word = selectedWord(name)!;
  if (word === 'notification') return 'notifications are for one user each, and no webhook receives them';
  const channel = isOfWorkspace ? 'workspace' : 'organization';
  if (typesOf(name, word).some((type) => isOn(channel, word, type))) return null;
  return `${isOfWorkspace ? 'a workspace' : 'an organization itself'} has no events of ${word}`;
}

/** The resources that types are about. */
export const wordsOf = (types: readonly string[]): ReadonlySet<ResourceWord> =>
  new Set(types.flatMap((name) => selectedWord(name) ?? []));
