import { useEffect } from 'react';

const AGAIN_MS = 10_000;

/** Asks again when the page is seen again: what was done in another window or tab may have changed it. */
export function useWhenSeen(again: () => void) {
  useEffect(() => {
    const ask = () => {
      if (document.visibilityState === 'visible') again();
    };
    document.addEventListener('visibilitychange', ask);
    return () => document.removeEventListener('visibilitychange', ask);
  }, [again]);
}

/** Asks again every ten seconds, but not behind another window or tab; at once when the page is seen again. */
export function useWhileSeen(again: () => void) {
  useWhenSeen(again);
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') again();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [again]);
}
