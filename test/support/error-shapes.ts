import { expect } from 'vitest';
import { type ErrorCode, errorCatalogue } from '../../src/kernel/errors.ts';

interface Answer {
  statusCode: number;
  body: string;
  headers: Record<string, unknown>;
}

/**
 * What is wrong with an error answer; `null` when it has one of the two shapes of the spec, down to the order of the
 * keys.
 */
export function shapeFault({ statusCode, body, headers }: Answer): string | null {
  if (!String(headers['content-type']).startsWith('application/json'))
    return `content-type is ${String(headers['content-type'])}`;
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return `no JSON: ${body.slice(0, 200)}`;
  }
  if (typeof parsed !== 'object' || parsed === null) return `no object: ${body.slice(0, 200)}`;
  if ('detail' in parsed) return validationFault(statusCode, parsed as { detail: unknown });
  const { error, message, details, timestamp, status_code } = parsed as Record<string, unknown>;
  if (Object.keys(parsed).join() !== 'error,message,details,timestamp,status_code')
    return `keys ${Object.keys(parsed).join()}`;
  if (!Object.hasOwn(errorCatalogue, String(error))) return `unknown code ${String(error)}`;
  if (typeof message !== 'string' || message === '') return 'no message';
  if (typeof details !== 'object' || details === null || Array.isArray(details)) return 'details is no object';
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/.test(String(timestamp))) return `timestamp ${String(timestamp)}`;
  if (status_code !== statusCode) return `status_code ${String(status_code)} in an answer with ${statusCode}`;
  return leakFault(body);
}

function validationFault(statusCode: number, body: { detail: unknown }): string | null {
  if (statusCode !== 422) return `a validation error with status ${statusCode}`;
  if (Object.keys(body).join() !== 'detail' || !Array.isArray(body.detail) || body.detail.length === 0)
    return 'no list of details';
  for (const item of body.detail as Record<string, unknown>[]) {
    if (!/^type,loc,msg,input(,ctx)?$/.test(Object.keys(item).join())) return `item keys ${Object.keys(item).join()}`;
    const { type, loc, msg } = item;
    if (typeof type !== 'string' || typeof msg !== 'string' || msg === '') return 'type or msg is no text';
    if (!Array.isArray(loc) || !['path', 'query', 'header', 'body'].includes(String(loc[0])))
      return `loc ${JSON.stringify(loc)}`;
  }
  return leakFault(JSON.stringify((body.detail as { msg: string }[]).map(({ msg }) => msg)));
}

/** Nothing of the machinery shows: no SQL, no files, no stack. */
function leakFault(body: string): string | null {
  const leak = /prisma|postgres|\bselect .* from\b|insert into|node_modules|\bat [\w.<>]+ \(|\/src\/|\.ts:\d/i.exec(
    body,
  );
  return leak ? `shows '${leak[0]}'` : null;
}

/**
 * The exact answer of the spec for a caller who is not known.
 * @param message says in a failure who called
 */
export function expectUnauthenticated(answer: Answer, message?: string): void {
  expect(answer.statusCode, message).toBe(401);
  expect(shapeFault(answer), message).toBeNull();
  const body = JSON.parse(answer.body) as Record<string, unknown>;
  expect({ ...body, timestamp: '' }, message).toEqual({
    error: 'AUTHENTICATION_FAILED' satisfies ErrorCode,
    message: errorCatalogue.AUTHENTICATION_FAILED.message,
    details: {},
    timestamp: '',
    status_code: 401,
  });
}
