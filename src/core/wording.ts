const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A noun with its article, at the beginning of a sentence: `An environment`, `A user`. */
export const startingNoun = (noun: string): string =>
  capitalized(`${/^(?:[aeio]|u(?!se|ni|sa))/i.test(noun) ? 'an' : 'a'} ${noun}`);
