/**
 * `createdAt` -> `created_at`, character by character: written anew here, so that a mistake in the façade's own
 * renaming does not repeat itself in the tests that watch it.
 */
export function snakeCase(name: string): string {
  let result = '';
  for (let i = 0; i < name.length; i++) {
    const char = name[i]!;
    const isUpper = char !== char.toLowerCase();
    const before = name[i - 1] ?? '_';
    const after = name[i + 1] ?? '';
    const isDigit = (of: string) => of >= '0' && of <= '9';
    let end = i;
    while (isDigit(name[end] ?? '')) end++;
    const ending = name[end] ?? '';
    // `Per1k`: a number that a word goes on with is a word of its own
    const startsNumber = end > i && /[a-z]/.test(before) && /[a-z]/.test(ending);
    const startsWord =
      before !== '_' && (before === before.toLowerCase() || (after !== '' && after !== after.toUpperCase()));
    result += isUpper ? `${startsWord ? '_' : ''}${char.toLowerCase()}` : startsNumber ? `_${char}` : char;
  }
  return result;
}
