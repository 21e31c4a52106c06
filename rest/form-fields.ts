import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { ApiError } from '../src/kernel/errors.ts';
import { acceptJson } from './body-parser.ts';
import { restFields } from './names.ts';
import type { CompiledOperation } from './operation.ts';

/** The media type of forms without files. */
export const FORM_TYPE = 'application/x-www-form-urlencoded';
const MAX_FIELDS = 32;

/** For routes whose body may be a form without files: accepts one, or JSON. */
export function acceptFields(server: FastifyInstance, mostFields = MAX_FIELDS): void {
  acceptJson(server);
  server.addContentTypeParser(FORM_TYPE, { parseAs: 'buffer' }, (_request, body, done) => {
    const text = isUtf8(body as Buffer) ? (body as Buffer).toString('utf8') : null;
    // before it is parsed: every separator costs time and memory
    if (text === null || text.split('&', mostFields + 1).length > mostFields)
      done(new ApiError('INVALID_REQUEST', { reason: 'form_fields' }));
    else done(null, new URLSearchParams(text));
  });
}

/** A form as the body that JSON would be, with the names of the input object. Of equal fields the first one counts. */
export function bodyOfFields({ body }: CompiledOperation, given: unknown): unknown {
  if (!(given instanceof URLSearchParams) || !body) return given;
  const names = new Map([...restFields(body.type).keys()].map((name) => [plain(name), name]));
  const fields: Record<string, string> = {};
  for (const [key, value] of given) {
    const name = names.get(plain(key));
    if (name !== undefined) fields[name] ??= value;
  }
  return fields;
}

const plain = (name: string): string => name.replaceAll('_', '').toLowerCase();
