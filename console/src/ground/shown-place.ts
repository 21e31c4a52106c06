import { useSyncExternalStore } from 'react';
import type { Place } from './place';

let place: Place | null = null;
const listeners = new Set<() => void>();

/** The workspace whose views are shown, for what is around them; none, while it is not known what may be done there. */
export function showPlace(shown: Place | null): void {
  if (shown === place) return;
  place = shown;
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const useShownPlace = (): Place | null => useSyncExternalStore(subscribe, () => place);
