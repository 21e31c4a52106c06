import { useEffect, useState } from 'react';

/**
 * The colours that tokens have now, as a canvas takes them. A token may name two colours, of which the browser takes
 * one where it is used: an element that uses it tells which.
 */
export function coloursOf<Name extends string>(element: HTMLElement, tokens: readonly Name[]): Record<Name, string> {
  const former = element.style.color;
  const pairs = tokens.map((token) => {
    element.style.color = `var(${token})`;
    return [token, getComputedStyle(element).color];
  });
  element.style.color = former;
  return Object.fromEntries(pairs) as Record<Name, string>;
}

/** Another number whenever the reader, or the system, changes between light and dark. */
export function useThemeTurn(): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const next = () => setTurn((at) => at + 1);
    const system = matchMedia('(prefers-color-scheme: dark)');
    system.addEventListener('change', next);
    const chosen = new MutationObserver(next);
    chosen.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      system.removeEventListener('change', next);
      chosen.disconnect();
    };
  }, []);
  return turn;
}
