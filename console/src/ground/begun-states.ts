/** How long an authorization may take: after that the service does not take its code. */
const VALID_MS = 10 * 60_000;
const PREFIX = 'console-connecting ';

const keys = (): string[] => Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));

function forgetOld(): void {
  for (const key of keys()) if (!(Number(sessionStorage.getItem(key)) > Date.now())) sessionStorage.removeItem(key);
}

/**
 * The states of the authorizations that this tab has begun and that have not come back, so that a page that is loaded
 * again takes their codes. A state gives nothing: the service takes its code only from the user who has begun it.
 */
export const begunStates = {
  keep(state: string): void {
    forgetOld();
    sessionStorage.setItem(PREFIX + state, String(Date.now() + VALID_MS));
  },
  has(state: string): boolean {
    forgetOld();
    return sessionStorage.getItem(PREFIX + state) !== null;
  },
  any(): boolean {
    forgetOld();
    return keys().length > 0;
  },
  forget(state: string): void {
    sessionStorage.removeItem(PREFIX + state);
  },
  /** Leaves nothing to whoever signs in next. */
  forgetAll(): void {
    for (const key of keys()) sessionStorage.removeItem(key);
  },
};
