import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

it.each([
  ['login', { username: 'ann' }, 'password', { username: 'ann' }],
  ['reset-password', { token: 'a token' }, 'new_password', { token: '[redacted]' }],
  [
    'register',
    { email: 'a@b.test', username: 'ann', invite_token: 'secret' },
    'password',
    expect.objectContaining({ username: 'ann' }),
  ],
])('a secret that %s lacks: the whole body is shown, its secrets redacted', async (route, body, name, input) => {
  const answer = await callsOf(app).post(`/v1/auth/${route}`, body);
  expect(answer.statusCode).toBe(422);
  expect(answer.json().detail).toEqual([{ type: 'missing', loc: ['body', name], msg: 'Field required', input }]);
  expect(answer.body).not.toMatch(/"(?:secret|a token)"/);
});
