import { describe, expect, it } from 'vitest';
import {
  ApiError,
  alreadyExists,
  codeOf,
  conflict,
  errorCatalogue,
  forbidden,
  InputError,
  invalidInput,
  isRefusal,
  notFound,
  rateLimited,
  typeNotFound,
  unauthenticated,
  unavailable,
  valueIssue,
} from '../../src/kernel/errors.ts';

describe('an error of the catalogue', () => {
  it('has the message of its code, unless it brings one', () => {
    const error = new ApiError('FORBIDDEN');
    expect(error.message).toBe(errorCatalogue.FORBIDDEN.message);
    expect(error.name).toBe('ApiError');
    expect(new ApiError('FORBIDDEN', {}, 'No.').message).toBe('No.');
  });

  it('shows its code and its details to clients of GraphQL', () => {
    const error = new ApiError('RESOURCE_CONFLICT', { reason: 'x' });
    expect(error.toJSON()).toMatchObject({ extensions: { code: 'RESOURCE_CONFLICT', details: { reason: 'x' } } });
    expect(error).toMatchObject({ code: 'RESOURCE_CONFLICT', details: { reason: 'x' } });
    expect(new ApiError('FORBIDDEN').extensions).toEqual({ code: 'FORBIDDEN', details: {} });
  });

  it('says in its default message what happened, for every code', () => {
    for (const [code, { status, message }] of Object.entries(errorCatalogue)) {
      expect([code, message]).toEqual([code, expect.stringMatching(/^[A-Z].*\.$/)]);
      expect(status).toBeGreaterThanOrEqual(400);
    }
  });

  it('is told by its status', () => {
    const statuses = Object.fromEntries(Object.entries(errorCatalogue).map(([code, { status }]) => [code, status]));
    expect(statuses).toEqual({
      AUTHENTICATION_FAILED: 401,
      FORBIDDEN: 403,
      RESOURCE_NOT_FOUND: 404,
      RESOURCE_ALREADY_EXISTS: 409,
      RESOURCE_CONFLICT: 409,
      IDEMPOTENCY_CONFLICT: 409,
      PRECONDITION_FAILED: 412,
      INVALID_REQUEST: 400,
      METHOD_NOT_ALLOWED: 405,
      PAYLOAD_TOO_LARGE: 413,
      RANGE_NOT_SATISFIABLE: 416,
      UNSUPPORTED_MEDIA_TYPE: 415,
      RATE_LIMIT_EXCEEDED: 429,
      UPSTREAM_ERROR: 502,
      UPSTREAM_TIMEOUT: 504,
      SERVICE_UNAVAILABLE: 503,
      INTERNAL_SERVER_ERROR: 500,
      VALIDATION_ERROR: 422,
      OPERATION_TOO_LARGE: 400,
    });
  });
});

describe('invalid input', () => {
  it('names each issue with its place', () => {
    const issues = [
      { path: ['input', 'tags', 3], type: 'string_too_short', msg: 'too short' },
      { path: ['id'], type: 'missing', msg: 'missing' },
    ];
    const error = new InputError(issues);
    expect(error).toMatchObject({ name: 'InputError', code: 'VALIDATION_ERROR', issues });
    expect(error.message).toBe('input.tags.3: too short; id: missing');
    expect(error.extensions).toEqual({ code: 'VALIDATION_ERROR', details: { issues } });
  });

  it('that a service finds is worded as the others', () => {
    const issue = { path: ['a', 0], msg: 'Value error, no', type: 'value_error', ctx: { error: 'no' } };
    expect(valueIssue(['a', 0], 'no')).toEqual(issue);
    expect(invalidInput(['a', 0], 'no').issues).toEqual([issue]);
  });
});

describe('the code of an error', () => {
  it('is its own for those of the catalogue, and that of a fault for all others', () => {
    expect(codeOf(new ApiError('FORBIDDEN'))).toBe('FORBIDDEN');
    expect(codeOf(new InputError([]))).toBe('VALIDATION_ERROR');
    for (const other of [new Error('x'), null, undefined, 'x', { code: 'FORBIDDEN' }])
      expect(codeOf(other)).toBe('INTERNAL_SERVER_ERROR');
  });
});

describe('a refusal', () => {
  it('is to see something, or that it does not exist', () => {
    expect(isRefusal(forbidden('a:b'))).toBe(true);
    expect(isRefusal(notFound('user', 'x'))).toBe(true);
    for (const other of [unauthenticated(), conflict('user', 'x', 'y', 'z'), new Error('x'), { code: 'FORBIDDEN' }])
      expect(isRefusal(other)).toBe(false);
  });
});

describe('the errors that services throw', () => {
  it.each([
    [unauthenticated(), 'AUTHENTICATION_FAILED', {}, errorCatalogue.AUTHENTICATION_FAILED.message],
    [
      forbidden('secret:read'),
      'FORBIDDEN',
      { required_permission: 'secret:read' },
      "You need the permission 'secret:read' to do this.",
    ],
    [forbidden('secret:read', 'No.'), 'FORBIDDEN', { required_permission: 'secret:read' }, 'No.'],
    [
      notFound('api_token', 'tok_1'),
      'RESOURCE_NOT_FOUND',
      { resource_type: 'api_token', resource_id: 'tok_1' },
      "The api token 'tok_1' was not found.",
    ],
    [
      typeNotFound('identity_provider_test', 'x'),
      'RESOURCE_NOT_FOUND',
      { resource_type: 'identity_provider_test', resource_id: 'x' },
      "The identity provider test 'x' was not found.",
    ],
    [
      alreadyExists('model_entitlement', 'slug', 'x'),
      'RESOURCE_ALREADY_EXISTS',
      { resource_type: 'model_entitlement', field: 'slug', value: 'x', resource_id: null },
      "A model entitlement with the slug 'x' already exists.",
    ],
    [
      alreadyExists('user', 'email', 'x', 'usr_1'),
      'RESOURCE_ALREADY_EXISTS',
      { resource_type: 'user', field: 'email', value: 'x', resource_id: 'usr_1' },
      "A user with the email 'x' already exists.",
    ],
    [
      conflict('secret', 'sec_1', 'in_use', 'It is in use.', { by: 2 }),
      'RESOURCE_CONFLICT',
      { resource_type: 'secret', resource_id: 'sec_1', reason: 'in_use', by: 2 },
      'It is in use.',
    ],
    [unavailable(), 'SERVICE_UNAVAILABLE', { retry_after: 1 }, errorCatalogue.SERVICE_UNAVAILABLE.message],
    [rateLimited(2, 'Slowly.'), 'RATE_LIMIT_EXCEEDED', { retry_after: 2 }, 'Slowly.'],
  ])('%s', (error, code, details, message) => {
    expect({ code: error.code, details: error.details, message: error.message }).toEqual({ code, details, message });
  });

  it.each([
    [0, 1],
    [-3, 1],
    [0.2, 1],
    [1, 1],
    [1.01, 2],
    [59.9, 60],
  ])('who is too fast after %d s waits %d whole seconds', (seconds, wait) => {
    expect(rateLimited(seconds).details).toEqual({ retry_after: wait });
  });
});
