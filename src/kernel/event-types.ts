import { describedEvents } from './event-details.ts';
import { declarationOf, isResourceWord, placesOf, type ResourceWord } from './resources.ts';

/** The types of all events, except those about a stream itself. */
export const eventTypes: ReadonlySet<string> = new Set(describedEvents.map(({ type }) => type));

const words: ReadonlyMap<string, ResourceWord> = new Map(describedEvents.map(({ word, type }) => [type, word]));

/** What events of a type are about. `undefined` for a type that no event has. */
export const wordOf = (type: string): ResourceWord | undefined => words.get(type);

/** What a stream is of. */
export type Channel = 'workspace' | 'organization';

/** Whether events about a resource come on the stream of a workspace, or on that of an organization itself. */
export function isOn(channel: Channel, word: ResourceWord, type: string): boolean {
  const places = placesOf(word) ?? [];
  if (places.length === 0 || type === 'workspace.created' || type === 'workspace.restored') return true;
  return places.includes('organization') === (channel === 'organization');
}

/** Whether a reader may select it: the type of an event, or `<resource>.*` for all events of a resource. */
export function isEventName(name: string): boolean {
  if (eventTypes.has(name)) return true;
  const word = name.endsWith('.*') ? name.slice(0, -2) : '';
  return isResourceWord(word) && declarationOf(word).events !== undefined;
}
