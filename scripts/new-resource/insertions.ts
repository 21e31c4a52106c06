/** The table of resources with one more, before those that are internal to the service. */
export const withResource = (text: string, declaration: string): string =>
  text.replace('\n  // internal to the service\n', `${declaration}$&`);

const indentOf = (line: string): string => /^ */.exec(line)![0];

/**
 * A source with one more member at the end of a block, or of a model before its attributes.
 * @param start the text with which the first line of the block begins
 * @param end what ends the block: on the same line, or with the same indent
 * @throws Error when there is no such block
 */
export function withMember(text: string, start: string, member: string, end = '}'): string {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => line.trimStart().startsWith(start));
  const opening = lines[first];
  if (opening === undefined) throw new Error(`There is no '${start}'.`);
  const closing = opening.indexOf(end, opening.indexOf(start) + start.length);
  if (closing >= 0) {
    const before = opening.slice(0, closing).trimEnd();
    const separator = before.endsWith(start) ? '' : ', ';
    lines[first] = `${before}${separator}${member.trim().replace(/,$/, '')}${opening.slice(closing)}`;
    return lines.join('\n');
  }
  const last = lines.findIndex((line, at) => at > first && line.startsWith(indentOf(opening) + end));
  if (last < 0) throw new Error(`'${start}' does not end.`);
  const attributes = lines.findIndex((line, at) => at > first && at < last && line.trim().startsWith('@@'));
  lines.splice(attributes < 0 ? last : attributes - 1, 0, member);
  return lines.join('\n');
}
