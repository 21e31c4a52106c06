const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A noun with its article, at the beginning of a sentence: `An environment`, `A user`. */
export const startingNoun = (noun: string): string =>
  capitalized(`${/^(?:[aeio]|u(?!se|ni|sa))/i.test(noun) ? 'an' : 'a'} ${noun}`);

/**
 * A text as a part of a sentence: one line without invisible characters, of a bounded length. Strangers choose names:
 * they must not change the shape of what is said.
 */
export const oneLine = (text: string, length = 100): string =>
  text
    .replaceAll(/[\s\p{C}]+/gu, ' ')
    .trim()
    .slice(0, length);

/** What mail programs make a link of: addresses of the web and of mail, and names of hosts. */
const ADDRESSES = /[a-z][a-z0-9+.-]{0,30}:\/\/\S*|(?<!\S)\S*@\S+|(?:[\p{L}\p{N}-]{1,63}\.){1,10}\p{L}{2,}\S*/giu;
/** Of a longer text, only the beginning is searched for addresses. */
const MAX_SEARCHED = 2_000;

/**
 * A text as one line without addresses, in whose place a `…` stands.
 * @param own an address that stays: that of the reader
 */
export const withoutAddresses = (text: string, length: number, own?: string): string =>
  oneLine(
    oneLine(text, MAX_SEARCHED).replaceAll(ADDRESSES, (found) =>
      found.replace(/[.,;:!?]$/, '') === own ? found : '…',
    ),
    length,
  );

/** A name that somebody chose, as a part of a sentence in a mail to people who need not know them. */
export const nameInMail = (name: string): string => withoutAddresses(name, 60);

/** A time in UTC: `2026-11-22 19:30`. */
export const minuteOf = (time: Date): string => time.toISOString().slice(0, 16).replace('T', ' ');
