const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

/** A digest as base64. */
export const sha256 = async (bytes: BufferSource): Promise<string> =>
  base64(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));

/** Base64 for addresses. */
export const urlSafe = (text: string): string =>
  text.replaceAll('=', '').replace(/[+/]/g, (sign) => (sign === '+' ? '-' : '_'));

/** A text that nobody guesses. */
export const randomText = (): string => urlSafe(base64(crypto.getRandomValues(new Uint8Array(32))));
