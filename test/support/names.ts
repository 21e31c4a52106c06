/**
 * `createdAt` -> `created_at`, character by character: written anew here, so that a mistake in the façade's own renaming does not
 * repeat itself in the tests that watch it.
 */
export function snakeCase(name: string): string {
  let result = '';
  for (let i = 0; i < name.length; i++) {
    const char = name[i]!;
    const isUpper = char !== char.toLowerCase();
    const before = name[i - 1] ?? '_';
    const after = name[i + 1] ?? '';
    const startsWord =
      before !== '_' && (before === before.toLowerCase() || (after !== '' && after !== after.toUpperCase()));
    result += isUpper ? `${startsWord ? '_' : ''}${char.toLowerCase()}` : char;
  }
  return result;
}
