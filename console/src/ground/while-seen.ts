import { useEffect } from 'react';

const AGAIN_MS = 10_000;

/** Asks again every ten seconds, but not behind another window or tab; at once when the page is seen again. */
export function useWhileSeen(again: () => void) {
  useEffect(() => {
    const ask = () => {
      if (document.visibilityState === 'visible') again();
    };
    const timer = setInterval(ask, AGAIN_MS);
    document.addEventListener('visibilitychange', ask);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', ask);
    };
  }, [again]);
}
