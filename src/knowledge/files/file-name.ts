/** The longest name of a file, in characters and in bytes of UTF-8: what file systems take. */
const MAX_BYTES = 255;
/** What is kept of an ending when a name is cut. */
const MAX_ENDING = 16;

// control characters, line and paragraph separators, what turns the direction of writing, what is invisible, and
// characters without a meaning of their own
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu;

/**
 * The name of a file as it is kept and shown: without folders, without characters that hide or reorder what is read,
 * and no longer than file systems take. @returns `file` when nothing is left
 */
export function cleanFileName(given: string): string {
  const last = given.toWellFormed().split(/[/\\]/).at(-1) ?? '';
  const seen = last.normalize('NFC').replace(UNSEEN, '').replace(/\s+/g, ' ');
  // names of folders, and endings that Windows drops
  const name = cut(seen.replace(/^[ .]+(?=[ .]*$)|[ .]+$/g, '').trim());
  return name === '' ? 'file' : name;
}

/** Shortens a name between its beginning and its ending. */
function cut(name: string): string {
  if (Buffer.byteLength(name) <= MAX_BYTES) return name;
  const dot = name.lastIndexOf('.');
  const ending = dot > 0 && name.length - dot <= MAX_ENDING ? name.slice(dot) : '';
  let start = '';
  let bytes = Buffer.byteLength(ending);
  for (const character of name) {
    bytes += Buffer.byteLength(character);
    if (bytes > MAX_BYTES) break;
    start += character;
  }
  return start + ending;
}

/** `Content-Disposition` of a download (RFC 6266): ASCII for old clients, and the whole name. */
export function attachment(fileName: string): string {
  const ascii = fileName.replace(/[^\x20-\x7e]/g, '_').replace(/["\\%]/g, '_');
  const whole = encodeURIComponent(fileName).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${whole}`;
}

const endings: Readonly<Record<string, string>> = {
  'text/markdown': 'md',
  'text/html': 'html',
  'text/csv': 'csv',
  'text/css': 'css',
  'text/javascript': 'js',
  'application/json': 'json',
  'application/xml': 'xml',
  'text/xml': 'xml',
};

/** The name of the file that a text is downloaded as: its own name with the ending of its type. */
export function nameOfText(name: string, mimeType: string | null): string {
  const essence = (mimeType ?? '').split(';', 1)[0]!.trim().toLowerCase();
  const ending = `.${Object.hasOwn(endings, essence) ? endings[essence] : 'txt'}`;
  const clean = cleanFileName(name);
  return clean.toLowerCase().endsWith(ending) ? clean : cleanFileName(`${clean}${ending}`);
}
