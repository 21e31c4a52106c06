/** How text is taken out of content. */
export type TextKind = 'plain' | 'html' | 'json' | 'pdf' | 'docx';

/** Kinds of a container, whose bytes are not text. */
export const isContainer = (kind: TextKind): boolean => kind === 'pdf' || kind === 'docx';

const KINDS: Readonly<Record<string, TextKind>> = {
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'application/json': 'json',
  'application/ld+json': 'json',
  'application/x-ndjson': 'json',
  'application/pdf': 'pdf',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
};

const TEXTUAL =
  /^(text\/.*|application\/(xml|yaml|x-yaml|toml|sql|javascript|x-javascript|x-sh|graphql|.*\+(xml|json|yaml)))$/;

/**
 * How the text of a media type is read. `null`: it has none, as an image.
 * @param mimeType with or without parameters (`; charset=…`), in any case
 */
export function textKindOf(mimeType: string): TextKind | null {
  const type = mimeType.split(';', 1)[0]!.trim().toLowerCase();
  if (Object.hasOwn(KINDS, type)) return KINDS[type]!;
  return TEXTUAL.test(type) ? 'plain' : null;
}
