import { useSyncExternalStore } from 'react';
import { Listeners } from './listeners';
import type { Place } from './place';

let place: Place | null = null;
const listeners = new Listeners();

/** The workspace whose views are shown, for what is around them; none, while it is not known what may be done there. */
export function showPlace(shown: Place | null): void {
  if (shown === place) return;
  place = shown;
  listeners.tell();
}

export const useShownPlace = (): Place | null => useSyncExternalStore(listeners.subscribe, () => place);
