import { describedEvents } from '../core/event-details.ts';
import { declarationOf, isResourceWord } from '../core/resources.ts';

/** The types of all events, except those about a stream itself. */
export const eventTypes: ReadonlySet<string> = new Set(describedEvents.map(({ type }) => type));

/** Whether a reader may select it: the type of an event, or `<resource>.*` for all events of a resource. */
export function isEventName(name: string): boolean {
  if (eventTypes.has(name)) return true;
  const word = name.endsWith('.*') ? name.slice(0, -2) : '';
  return isResourceWord(word) && declarationOf(word).events !== undefined;
}
