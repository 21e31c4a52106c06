const KEY = 'console-theme';
const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];

/** What the reader has chosen on this device; the choice of the system, until then. */
export const theme = (): Theme => themes.find((name) => name === localStorage.getItem(KEY)) ?? 'system';

export function applyTheme(chosen: Theme = theme()): void {
  if (chosen === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, chosen);
  document.documentElement.dataset.theme = chosen;
}

export const nextTheme = (): Theme => themes[(themes.indexOf(theme()) + 1) % themes.length]!;
