/** The types that the service infers (defaults §5). A caller may use other words. */
export type InferredType =
  | 'text'
  | 'markdown'
  | 'code'
  | 'json'
  | 'html'
  | 'csv'
  | 'image'
  | 'audio'
  | 'video'
  | 'document';

const exact: Readonly<Record<string, InferredType>> = {
  'text/markdown': 'markdown',
  'text/x-markdown': 'markdown',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'text/csv': 'csv',
  'text/tab-separated-values': 'csv',
  'application/json': 'json',
  'application/x-ndjson': 'json',
  'text/css': 'code',
  'text/javascript': 'code',
  'text/xml': 'code',
  'application/javascript': 'code',
  'application/typescript': 'code',
  'application/xml': 'code',
  'application/sql': 'code',
  'application/toml': 'code',
  'application/yaml': 'code',
  'application/x-sh': 'code',
  'application/pdf': 'document',
  'application/rtf': 'document',
  'text/rtf': 'document',
  'application/msword': 'document',
  'application/vnd.ms-excel': 'document',
  'application/vnd.ms-powerpoint': 'document',
  'application/epub+zip': 'document',
};

const patterns: readonly (readonly [RegExp, InferredType])[] = [
  [/^image\//, 'image'],
  [/^audio\//, 'audio'],
  [/^video\//, 'video'],
  [/\+json$/, 'json'],
  [/^text\/x-/, 'code'],
  [/^text\//, 'text'],
  [/^application\/vnd\.(?:openxmlformats-officedocument|oasis\.opendocument)\./, 'document'],
];

/** The type of something with a media type; `null` if that tells nothing. Parameters such as `charset` are ignored. */
export function typeOfMime(mimeType: string): InferredType | null {
  const essence = mimeType.split(';', 1)[0]!.trim().toLowerCase();
  return (
    (Object.hasOwn(exact, essence) ? exact[essence] : undefined) ??
    patterns.find(([pattern]) => pattern.test(essence))?.[1] ??
    null
  );
}

const mimes: Readonly<Record<string, string>> = {
  markdown: 'text/markdown',
  json: 'application/json',
  html: 'text/html',
  csv: 'text/csv',
};

/** The media type of a text of this type. */
export const mimeOfText = (artifactType: string): string =>
  Object.hasOwn(mimes, artifactType) ? mimes[artifactType]! : 'text/plain';
