import { useSyncExternalStore } from 'react';

const KEY = 'console-theme';
export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];
const listeners = new Set<() => void>();

/** What the reader has chosen on this device; the choice of the system, until then. */
const theme = (): Theme => themes.find((name) => name === localStorage.getItem(KEY)) ?? 'system';

export function applyTheme(chosen: Theme = theme()): void {
  if (chosen === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, chosen);
  document.documentElement.dataset.theme = chosen;
  for (const listener of listeners) listener();
}

export const nextTheme = (): Theme => themes[(themes.indexOf(theme()) + 1) % themes.length]!;

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

export const useTheme = (): Theme => useSyncExternalStore(subscribe, theme);
