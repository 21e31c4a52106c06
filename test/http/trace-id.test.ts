import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { type Person, register } from '../support/person.ts';

let app: TestApp;
let user: Person;
beforeAll(async () => {
  app = await startTestApp();
  user = await register(app);
});
afterAll(() => app.close());

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceOf = async (headers: Record<string, string>, url = '/v1/auth/config') =>
  (await callsOf(app).get(url, headers)).headers['x-trace-id'];

describe('x-trace-id', () => {
  it.each(['a', 'My-Trace_1.0', 'x'.repeat(128)])('is echoed: %s', async (id) => {
    expect(await traceOf({ 'x-trace-id': id })).toBe(id);
  });

  it.each(['', ' ', 'x'.repeat(129), 'a b', 'a/b', 'ä', '<script>', 'a\tb'])(
    'is replaced when it is %j',
    async (id) => {
      expect(await traceOf({ 'x-trace-id': id })).toMatch(/^[0-9a-f-]{36}$/);
    },
  );

  it('is made anew for each request that has none', async () => {
    expect(await traceOf({})).not.toBe(await traceOf({}));
  });

  it('is on answers of every kind', async () => {
    for (const url of [
      '/v1/auth/me',
      '/v1/nowhere',
      '/healthz',
      '/graphql',
      '/account/verify-email',
      '/v1/auth/invite-info',
    ]) {
      expect(await traceOf({ 'x-trace-id': 'everywhere' }, url)).toBe('everywhere');
    }
  });

  it('is stored with what the request did', async () => {
    await callsOf(app).put(
      `/v1/users/${user.userId}`,
      { bio: 'traced' },
      { ...user.headers, 'x-trace-id': 'stored-trace' },
    );
    expect(await app.database.prisma.activity.findMany({ where: { traceId: 'stored-trace' } })).toMatchObject([
      { action: 'update', resourceType: 'user' },
    ]);
  });
});

describe('traceparent', () => {
  it('gives the trace id where x-trace-id is absent or unusable', async () => {
    const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
    expect(await traceOf({ traceparent })).toBe(TRACE);
    expect(await traceOf({ traceparent, 'x-trace-id': 'a b' })).toBe(TRACE);
    expect(await traceOf({ traceparent, 'x-trace-id': 'mine' })).toBe('mine');
  });

  it.each([
    `00-${TRACE}`,
    `ff-${TRACE}-00f067aa0ba902b7-01`,
    `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`,
    '00-zz-00f067aa0ba902b7-01',
  ])('that is malformed is ignored: %s', async (traceparent) => {
    expect(await traceOf({ traceparent })).toMatch(/^[0-9a-f-]{36}$/);
  });
});
