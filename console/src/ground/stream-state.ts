import { useSyncExternalStore } from 'react';

export type StreamState = 'starting' | 'live' | 'away';

let state: StreamState = 'starting';
let turn = 0;
const listeners = new Set<() => void>();

/** Whether what others do arrives at once. */
export const streamState = {
  set(next: StreamState) {
    if (next === state) return;
    if (next === 'live' && state === 'away') turn += 1;
    state = next;
    for (const listener of listeners) listener();
  },
  /** Streams begin again, where they were. */
  begin() {
    turn += 1;
    for (const listener of listeners) listener();
  },
};

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const useStreamState = (): StreamState => useSyncExternalStore(subscribe, () => state);

/** How often streams had to begin again. */
export const useStreamTurn = (): number => useSyncExternalStore(subscribe, () => turn);
