import type { ByteRange } from '../../platform/storage/store.ts';

const ONE = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * The bytes that a `Range` header asks for. `null`: all of them, because it asks for none, for several ranges or in a
 * unit that is not known. `unsatisfiable`: there are no such bytes.
 */
export function rangeOf(header: string | undefined, sizeBytes: number): ByteRange | 'unsatisfiable' | null {
  const [, first = '', last = ''] = ONE.exec(header?.replaceAll(/[ \t]/g, '') ?? '') ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? 'unsatisfiable' : { start: sizeBytes - length, end: sizeBytes - 1 };
  }
  const start = Number(first);
  const end = last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  // the wrong way round is no range at all
  if (last !== '' && Number(last) < start) return null;
  return start >= sizeBytes ? 'unsatisfiable' : { start, end };
}

/** Whether a list of entity tags has this one; weak ones are compared by what they mark. */
export function hasTag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((item) => item.trim() === '*' || item.trim().replace(/^W\//, '') === etag);
}
