import { ApiError } from '../src/kernel/errors.ts';

// an entity tag: any visible character but a quote between quotes, weak with W/ before it (RFC 9110, 8.8.3)
const TAG = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"$/;
const LIST = /^[\t ,]*(?:W\/)?"[^"]*"[\t ]*(?:,[\t ]*(?:(?:W\/)?"[^"]*"[\t ]*)?)*$/;
const VERSION = /^[1-9]\d{0,9}$/;

/** The strong tag of a version. */
export const etagOf = (version: number): string => `"${version}"`;

/**
 * The versions that `If-Match` names; `null` when it is absent or `*`. A weak tag, or one that this service never
 * issued, matches no version (RFC 9110, 13.1.1).
 * @throws ApiError INVALID_REQUEST when the header is not a list of tags
 */
export function versionsOf(header: string | string[] | undefined): readonly number[] | null {
  if (header === undefined) return null;
  const text = [header].flat().join(', ');
  if (text.trim() === '*') return null;
  if (!LIST.test(text)) throw unusable();
  const tags = text.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.flatMap((tag) => {
    const [, weak, opaque = ''] = TAG.exec(tag) ?? fail();
    return !weak && VERSION.test(opaque) ? Number(opaque) : [];
  });
}

function fail(): never {
  throw unusable();
}

const unusable = () =>
  new ApiError(
    'INVALID_REQUEST',
    { reason: 'if_match' },
    'The header If-Match must be `*` or entity tags between quotes, such as the ETag of an earlier answer.',
  );
