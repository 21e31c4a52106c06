/**
 * The Latin letters and digits of a text, in lower case, with single hyphens between its words: `Été 2025!` ->
 * `ete-2025`. Empty if it has none.
 */
export const slugged = (text: string, maxLength: number): string =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, maxLength)
    .replaceAll(/^-|-$/g, '');
