import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';

/** A name as it is stored: in composed form, trimmed, and with one space for white space in it. */
export const cleanName = (name: string): string => name.normalize('NFC').trim().replaceAll(/\s+/gu, ' ');

/** The names of an entity, as they are given. */
export interface GivenNames {
  name?: string | null | undefined;
  aliases?: readonly string[] | null | undefined;
}

/** The names that consist of white space alone, with their place. */
export function blankNames({ name, aliases }: GivenNames, path: readonly (string | number)[]): InputIssue[] {
  const isBlank = (text: string) => cleanName(text) === '';
  const blank = (...at: (string | number)[]) => valueIssue([...path, ...at], 'must not be blank');
  return [
    ...(typeof name === 'string' && isBlank(name) ? [blank('name')] : []),
    ...(aliases ?? []).flatMap((alias, at) => (isBlank(alias) ? [blank('aliases', at)] : [])),
  ];
}

/**
 * The same input with its names as they are stored.
 * @throws InputError for blank ones
 */
export function withCleanNames<Input extends GivenNames>(input: Input): Input {
  const issues = blankNames(input, ['input']);
  if (issues.length > 0) throw new InputError(issues);
  return cleaned(input);
}

/** Names as they are stored; what is not given stays so. */
export const cleaned = <Input extends GivenNames>(input: Input): Input => ({
  ...input,
  ...(typeof input.name === 'string' && { name: cleanName(input.name) }),
  ...(input.aliases && { aliases: input.aliases.map(cleanName) }),
});
