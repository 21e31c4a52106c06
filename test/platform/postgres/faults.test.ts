import { GraphQLError } from 'graphql';
import { describe, expect, it } from 'vitest';
import { callerErrorOfAny } from '../../../src/platform/postgres/faults.ts';

const withCode = (code: string, message = 'a fault') => Object.assign(new Error(message), { code });

describe('an error that comes from anywhere', () => {
  it.each([
    ['no connection becomes free', new Error('timeout exceeded when trying to connect')],
    ['the connection broke', new Error('Connection terminated unexpectedly')],
    ['the server stops', withCode('57P01')],
    ['the server follows another, behind a pooler', withCode('25006', 'cannot execute INSERT')],
    ['a statement was cancelled', withCode('57014', 'canceling statement due to statement timeout')],
    ['a field failed by one', new GraphQLError('x', { originalError: withCode('53300') })],
  ])('is an outage of the database: %s', (_what, error) => {
    expect(callerErrorOfAny(error)).toMatchObject({ code: 'SERVICE_UNAVAILABLE', details: { retry_after: 1 } });
  });

  it.each([
    ['a file is missing', withCode('ENOENT', 'ENOENT: no such file')],
    ['another service is away', withCode('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:25')],
    ['a row is refused', withCode('23505')],
    ['a bug', new TypeError('x is not a function')],
  ])('is what it is: %s', (_what, error) => expect(callerErrorOfAny(error)).toBe(error));
});
