import { useSyncExternalStore } from 'react';

export type StreamState = 'starting' | 'live' | 'away';

let state: StreamState = 'starting';
const listeners = new Set<() => void>();

/** Whether what others do arrives at once. */
export const streamState = {
  set(next: StreamState) {
    if (next === state) return;
    state = next;
    for (const listener of listeners) listener();
  },
};

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const useStreamState = (): StreamState => useSyncExternalStore(subscribe, () => state);
