/** The forms of a resource's name. */
export interface Naming {
  /** `field_note` */
  word: string;
  /** `fieldNote` */
  property: string;
  /** `FieldNote` */
  type: string;
  /** `field note` */
  noun: string;
  /** `field-note` */
  file: string;
  /** `field_notes`: the table. */
  table: string;
  /** `fieldNotes`: the service and the list. */
  list: string;
  /** `FieldNotes` */
  Lists: string;
  /** `field-notes`: the folder, and the part of paths. */
  folder: string;
  /** `field notes` */
  nouns: string;
  /** `fn`: of identifiers. */
  prefix: string;
}

const camel = (word: string): string => word.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
export const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** As tables are found by the word of their resource (`tableNamed`). */
const pluralOf = (word: string): string => `${word}s`.replace(/ys$/, 'ies');

/** The initials of several words, or the beginning of one, that no other resource has. */
function prefixOf(word: string, taken: ReadonlySet<string>): string {
  const words = word.split('_');
  const initials = words.map((part) => part.charAt(0)).join('');
  const candidates = [
    ...(words.length > 1 ? [initials] : []),
    ...Array.from({ length: word.length - 1 }, (_, at) => word.replaceAll('_', '').slice(0, at + 2)),
  ];
  const free = candidates.find((candidate) => candidate.length > 1 && !taken.has(candidate));
  if (free === undefined) throw new Error(`Give '${word}' a prefix for its identifiers: --prefix.`);
  return free;
}

/**
 * The names of a resource.
 * @param given its name, as a word or with hyphens: `field_note`
 * @param taken prefixes of other resources
 * @throws Error for what is no word
 */
export function namingOf(given: string, taken: ReadonlySet<string>, prefix?: string): Naming {
  const word = given.replaceAll('-', '_');
  if (!/^[a-z]+(?:_[a-z]+)*$/.test(word))
    throw new Error(`'${given}' is no name: give one noun in the singular, of lower-case letters, such as field_note.`);
  if (prefix !== undefined && (!/^[a-z]+$/.test(prefix) || taken.has(prefix)))
    throw new Error(`'${prefix}' is no free prefix of lower-case letters.`);
  const plural = pluralOf(word);
  return {
    word,
    property: camel(word),
    type: upperFirst(camel(word)),
    noun: word.replaceAll('_', ' '),
    file: word.replaceAll('_', '-'),
    table: plural,
    list: camel(plural),
    Lists: upperFirst(camel(plural)),
    folder: plural.replaceAll('_', '-'),
    nouns: plural.replaceAll('_', ' '),
    prefix: prefix ?? prefixOf(word, taken),
  };
}
