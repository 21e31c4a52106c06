import { METHODS, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { operations } from '../support/operations.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
  await app.listen();
});
afterAll(() => app.close());

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: { error: string; details: Record<string, unknown>; status_code: number };
}

const port = () => Number(new URL(app.url).port);

/** A method that Node's client and parser know. */
const ask = (method: string, path: string, headers: Record<string, string> = {}, body = '') =>
  new Promise<Answer>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port: port(), method, path, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: JSON.parse(text) as Answer['body'] }),
      );
    });
    sent.on('error', reject).end(body);
  });

/** Bytes as they are: for what no client would send. */
const write = (text: string) =>
  new Promise<Answer>((resolve, reject) => {
    let answer = '';
    const socket = connect(port(), '127.0.0.1', () => socket.write(text));
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.on('error', reject).on('end', () => {
      const [head = '', body = ''] = answer.split('\r\n\r\n');
      const lines = head.split('\r\n').slice(1);
      resolve({
        status: Number(head.split(' ')[1]),
        headers: Object.fromEntries(lines.map((line) => [line.split(':')[0]!.toLowerCase(), line.split(': ')[1]])),
        body: JSON.parse(body) as Answer['body'],
      });
      socket.end();
    });
  });

const paths = [...new Set(operations.map(({ path }) => path))];
/** Whether a route takes a path: `/users/me` is also a `/users/{user_id}`. */
const takes = (template: string, path: string) => new RegExp(`^${template.replace(/\{[^}]*\}/g, '[^/]+')}$`).test(path);
const methodsOf = (path: string) => {
  const taken = operations.filter((operation) => takes(operation.path, path));
  const own = [...new Set(taken.map(({ method }) => String(method)))];
  // a stream has no head: its length and its end are unknown
  const hasHead = taken.some(({ method, type }) => method === 'GET' && type !== 'subscription');
  return [...own, ...(hasHead ? ['HEAD'] : []), 'OPTIONS'].sort();
};
const others = METHODS.filter((method) => method !== 'CONNECT' && method !== 'OPTIONS' && method !== 'HEAD');

function expectRefused({ status, headers, body }: Answer, allowed: string[]): void {
  expect([status, body.error, body.status_code]).toEqual([405, 'METHOD_NOT_ALLOWED', 405]);
  expect(body.details).toEqual({ allowed });
  expect(headers.allow).toBe(allowed.join(', '));
}

describe('a method that a path does not have', () => {
  it.each(paths)('%s is 405 with what it has, whatever the method', async (path) => {
    const allowed = methodsOf(path);
    for (const method of others.filter((name) => !allowed.includes(name)))
      expectRefused(await ask(method, path.replace(/\{[^}]*\}/g, 'x')), allowed);
  });

  it.each(['/v1/auth/config', '/openapi.json', '/healthz', '/graphql', '/docs/'])(
    '%s, also when Node has never heard of the method',
    async (path) => {
      const { headers } = await ask('PURGE', path);
      const allowed = String(headers.allow).split(', ');
      expect(allowed).toContain('GET');
      for (const method of ['FOO', 'get', 'M0VE'])
        expectRefused(await write(`${method} ${path} HTTP/1.1\r\nhost: x\r\n\r\n`), allowed);
      expectRefused(await write(`CONNECT ${path} HTTP/1.1\r\nhost: x\r\n\r\n`), allowed);
    },
  );

  it('is refused before its body is looked at', async () => {
    const answer = await ask('POST', '/v1/auth/config', { 'content-type': 'text/plain' }, '{');
    expectRefused(answer, ['GET', 'HEAD', 'OPTIONS']);
    expect(answer.headers['x-trace-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('of no path at all is 404', async () => {
    for (const answer of [
      await ask('QUERY', '/v1/nothing'),
      await write('FOO /v1/nothing HTTP/1.1\r\nhost: x\r\n\r\n'),
      await write('CONNECT example.test:443 HTTP/1.1\r\nhost: x\r\n\r\n'),
    ]) {
      expect([answer.status, answer.body.error]).toEqual([404, 'RESOURCE_NOT_FOUND']);
      expect(answer.headers.allow).toBeUndefined();
    }
  });

  it('of a line that is no request is 400', async () => {
    const answer = await write('FOO\r\n\r\n');
    expect([answer.status, answer.body.details]).toEqual([400, { reason: 'malformed_http' }]);
  });
});
