import { buildSchema } from 'graphql';
import { afterAll, describe, expect, it } from 'vitest';
import { compileOperations } from '../../rest/compile.ts';
import { failureResponse, failureStatuses } from '../../rest/statuses.ts';
import { type ErrorCode, errorCatalogue } from '../../src/kernel/errors.ts';
import { folderOf, removeFolders, toySchema } from './toy.ts';

afterAll(removeFolders);

/** The failures of the one operation of a document. */
function failuresOf(
  document: string,
  { mayFail = [], isPublic = true }: { mayFail?: ErrorCode[]; isPublic?: boolean },
) {
  const schema = toySchema();
  for (const root of [schema.getQueryType(), schema.getMutationType()])
    for (const field of Object.values(root!.getFields()))
      field.extensions = { access: isPublic ? 'public' : 'signed-in', mayFail };
  const [operation] = compileOperations(schema, folderOf(document));
  return failureStatuses(operation!);
}

/** What every operation may answer. */
const ANYWHERE = [400, 429, 500, 503];
const sorted = (...statuses: number[]) => [...ANYWHERE, ...statuses].sort((a, b) => a - b);
const text = 'query A @rest(method: GET, path: "/v1/x", errors: S0)';

describe('the failures of an operation', () => {
  it('are those of any operation, in ascending order', () => {
    expect(failuresOf(`${text} { health @body }`, {})).toEqual(ANYWHERE);
  });

  it('are those of callers that are unknown or may not, unless it is public', () => {
    expect(failuresOf(`${text} { health @body }`, { isPublic: false })).toEqual(sorted(401, 403));
  });

  it('are those that its root fields declare', () => {
    const mayFail: ErrorCode[] = ['UPSTREAM_TIMEOUT', 'RANGE_NOT_SATISFIABLE'];
    expect(failuresOf(`${text} { health @body }`, { mayFail })).toEqual(sorted(416, 504));
  });

  it.each([
    ['A', [401, 403, 422]],
    ['A0', [401, 403]],
    ['B', [401, 403, 404, 422]],
    ['C', [422]],
    ['S', [422]],
    ['S0', []],
  ])('are those of the error set %s of the spec', (set, statuses) => {
    const document = `query A @rest(method: GET, path: "/v1/x", errors: ${set}) { health @body }`;
    expect(failuresOf(document, {})).toEqual(sorted(...statuses));
  });

  it.each<[what: string, document: string, statuses: number[]]>([
    ['a parameter', `query A($a: String) ${text.slice(8)} { echo(text: $a) @body }`, [422]],
    [
      'a text in the path, which names something',
      'query A($a: String!) @rest(method: GET, path: "/v1/{a}", errors: S0) { echo(text: $a) @body }',
      [404, 422],
    ],
    [
      'an identifier in the query string',
      `query A($a: ID!) ${text.slice(8)} { item(id: $a) @body { id } }`,
      [404, 422],
    ],
    ['a list of identifiers', `query A($a: [ID!]) ${text.slice(8)} { echo(ids: $a) @body }`, [404, 422]],
    [
      'a change without a body',
      'mutation A @rest(method: POST, path: "/v1/x", errors: S0) { removeItem(id: "1") @body }',
      [409, 415],
    ],
    [
      'a body',
      'mutation A($a: UpdateItemInput! @body) @rest(method: POST, path: "/v1/x", errors: S0) ' +
        '{ updateItem(id: "1", input: $a) @body }',
      [409, 413, 415, 422],
    ],
    [
      'an identifier in the body',
      'mutation A($a: PictureInput! @body) @rest(method: POST, path: "/v1/x", errors: S0) ' +
        '{ addPicture(id: "1", input: $a) @body }',
      [404, 409, 413, 415, 422],
    ],
    [
      'a question with a body',
      'query A($a: Filter! @body) @rest(method: POST, path: "/v1/x", errors: S0) { search(filter: $a) @body }',
      [404, 413, 415, 422],
    ],
  ])('follow from its form: %s', (_what, document, statuses) => {
    expect(failuresOf(document, {})).toEqual(sorted(...statuses));
  });
});

describe('a version that has passed', () => {
  const schema = buildSchema(`
    type Query { text(input: Outer!): String }
    type Mutation { change(input: Outer!): String move(input: Plain!): String remove: String keep: String }
    input Outer { inner: [Inner!] name: String }
    input Inner { expectedVersion: Int }
    input Plain { name: String version: Int }
  `);
  // as the schema's own plugin marks it
  Object.assign(schema.getMutationType()!.getFields().remove!.extensions, { versionArgument: 'expectedVersion' });
  const compiled = (document: string) => failureStatuses(compileOperations(schema, folderOf(document))[0]!);

  it.each([
    ['If-Match', 'mutation A @rest(method: DELETE, path: "/v1/x") { remove @body }', true],
    ['neither', 'mutation A @rest(method: DELETE, path: "/v1/x") { keep @body }', false],
    ['the body', 'mutation A($a: Outer! @body) @rest(method: POST, path: "/v1/x") { change(input: $a) @body }', true],
    [
      'a body without one',
      'mutation A($a: Plain! @body) @rest(method: POST, path: "/v1/x") { move(input: $a) @body }',
      false,
    ],
  ])('is a failure where it can be given: in %s', (_where, document, isThere) => {
    expect(compiled(document).includes(412)).toBe(isThere);
  });
});

const response = (status: number, name: string, description: string, details: Partial<Record<ErrorCode, object>>) => ({
  name,
  description,
  examples: Object.fromEntries(
    Object.entries(details).map(([code, shown]) => [
      code,
      {
        error: code,
        message: errorCatalogue[code as ErrorCode].message,
        details: shown,
        timestamp: '2026-01-02T03:04:05.678901',
        status_code: status,
      },
    ]),
  ),
});

describe('the response that all operations share for a status', () => {
  it.each<[number, string, string, Partial<Record<ErrorCode, object>>]>([
    [
      400,
      'InvalidRequest',
      'The request cannot be read. `details.reason` says why.',
      { INVALID_REQUEST: { reason: 'idempotency_key' } },
    ],
    [401, 'AuthenticationFailed', 'Authentication is missing or invalid.', { AUTHENTICATION_FAILED: {} }],
    [
      403,
      'Forbidden',
      'The caller lacks the permission in `details.required_permission`.',
      { FORBIDDEN: { required_permission: 'workspace:create' } },
    ],
    [
      404,
      'NotFound',
      'The resource does not exist or is hidden from the caller.',
      { RESOURCE_NOT_FOUND: { resource_type: 'workspace', resource_id: 'ws_01M7YDNKP9EQGSJ8EQS85QTN9P' } },
    ],
    [
      409,
      'Conflict',
      'A resource with this value already exists, the state of the resource does not allow the change, ' +
        'or the `Idempotency-Key` is in use.',
      {
        RESOURCE_ALREADY_EXISTS: {
          resource_type: 'environment',
          field: 'slug',
          value: 'production',
          resource_id: null,
        },
        RESOURCE_CONFLICT: {
          resource_type: 'organization',
          resource_id: 'org_01M7YDNKCMBEFDG2BQ8Z4D4Y0W',
          reason: 'last_owner',
        },
        IDEMPOTENCY_CONFLICT: { reason: 'different_request' },
      },
    ],
    [
      412,
      'PreconditionFailed',
      'The resource has changed since it was read. `details.current_version` is its current version.',
      { PRECONDITION_FAILED: { current_version: 3 } },
    ],
    [
      413,
      'PayloadTooLarge',
      'The body is larger than `details.limit_bytes` bytes.',
      { PAYLOAD_TOO_LARGE: { limit_bytes: 2 * 1024 * 1024 } },
    ],
    [
      415,
      'UnsupportedMediaType',
      'The content type of the body is not the one in `details.expected`.',
      { UNSUPPORTED_MEDIA_TYPE: { expected: 'application/json' } },
    ],
    [
      416,
      'RangeNotSatisfiable',
      'The range lies beyond the end of the file, which has `details.size_bytes` bytes.',
      { RANGE_NOT_SATISFIABLE: { size_bytes: 1024 } },
    ],
    [
      429,
      'RateLimited',
      'Too many requests. Retry after `details.retry_after` seconds.',
      { RATE_LIMIT_EXCEEDED: { retry_after: 1 } },
    ],
    [500, 'InternalError', 'Internal error of the service.', { INTERNAL_SERVER_ERROR: {} }],
    [502, 'UpstreamError', 'The service in `details.upstream` failed.', { UPSTREAM_ERROR: { upstream: 'oauth' } }],
    [
      503,
      'ServiceUnavailable',
      'The service cannot answer now. Retry after `details.retry_after` seconds.',
      { SERVICE_UNAVAILABLE: { retry_after: 1 } },
    ],
    [
      504,
      'UpstreamTimeout',
      'The service in `details.upstream` did not answer in time.',
      { UPSTREAM_TIMEOUT: { upstream: 'oauth' } },
    ],
  ])('%i has a name, a description and an example of each code', (status, name, description, details) => {
    expect(failureResponse(status)).toEqual(response(status, name, description, details));
  });

  it('of invalid input shows an error without a code', () => {
    expect(failureResponse(422)).toEqual({
      name: 'InvalidInput',
      description: 'Invalid parameters or body. Lists all failures at once.',
      examples: {
        VALIDATION_ERROR: {
          detail: [{ type: 'missing', loc: ['body', 'name'], msg: 'Field required', input: {} }],
        },
      },
    });
  });

  it('without a code is named by its number', () => {
    expect(failureResponse(418)).toEqual({ name: '418', description: '', examples: {} });
  });
});
