import { useSyncExternalStore } from 'react';
import { Listeners } from './listeners';

export type StreamState = 'starting' | 'live' | 'away';

let state: StreamState = 'starting';
let turn = 0;
const listeners = new Listeners();

/** Whether what others do arrives at once. */
export const streamState = {
  set(next: StreamState) {
    if (next === state) return;
    if (next === 'live' && state === 'away') turn += 1;
    state = next;
    listeners.tell();
  },
  /** Streams begin again, where they were. */
  begin() {
    turn += 1;
    listeners.tell();
  },
};

export const useStreamState = (): StreamState => useSyncExternalStore(listeners.subscribe, () => state);

/** How often streams had to begin again. */
export const useStreamTurn = (): number => useSyncExternalStore(listeners.subscribe, () => turn);
