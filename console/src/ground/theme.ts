import { useSyncExternalStore } from 'react';
import { Listeners } from './listeners';

const KEY = 'console-theme';
export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];
const listeners = new Listeners();

/** What the reader has chosen on this device; the choice of the system, until then. */
const theme = (): Theme => themes.find((name) => name === localStorage.getItem(KEY)) ?? 'system';

export function applyTheme(chosen: Theme = theme()): void {
  if (chosen === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, chosen);
  document.documentElement.dataset.theme = chosen;
  listeners.tell();
}

export const nextTheme = (): Theme => themes[(themes.indexOf(theme()) + 1) % themes.length]!;

export const useTheme = (): Theme => useSyncExternalStore(listeners.subscribe, theme);
