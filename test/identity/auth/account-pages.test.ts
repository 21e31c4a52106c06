import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../../../src/paths.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Calls, callsOf } from '../../support/calls.ts';
import { register } from '../../support/person.ts';

let app: TestApp;
let api: Calls;

beforeAll(async () => {
  app = await startTestApp();
  api = callsOf(app);
});
afterAll(() => app.close());

const linked = ['/account/verify-email', '/account/reset-password', '/account/accept-invitation'];
const pages = [...linked, '/account/forgot-password', '/account/register'];

describe.each(pages)('%s', (page) => {
  it('is a page that runs nothing but its own script and style', async () => {
    const answer = await api.get(`${page}?token=abc`);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(answer.headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; " +
        "base-uri 'none'; frame-ancestors 'none'",
    );
    expect(answer.body).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bon\w+=|style=|javascript:/);
  });

  it('leaks its address to nobody and is kept by nobody', async () => {
    const { headers } = await api.get(`${page}?token=abc`);
    expect(headers).toMatchObject({
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
  });

  it('is the same for every token', async () => {
    const bodies = await Promise.all(
      ['', '?token=a', '?token=%3Cscript%3Ealert(1)%3C/script%3E'].map((query) => api.get(page + query)),
    );
    expect(new Set(bodies.map((answer) => answer.body)).size).toBe(1);
  });

  it('finds what it refers to, wherever the service is mounted', async () => {
    const { body } = await api.get(page);
    const references = [...body.matchAll(/(?:src|href)="(assets[^"]+)"/g)].map((match) => match[1]!);
    expect(references).toEqual(['assets/account.css', 'assets/account.js']);
    for (const reference of references) {
      const answer = await api.get(new URL(reference, `http://host${page}`).pathname);
      expect(answer.statusCode).toBe(200);
      expect(answer.headers['x-content-type-options']).toBe('nosniff');
    }
  });

  it('names every input with a label', async () => {
    const { body } = await api.get(page);
    const inputs = [...body.matchAll(/<input id="([^"]+)"/g)].map((match) => match[1]);
    const labels = [...body.matchAll(/<label for="([^"]+)"/g)].map((match) => match[1]);
    expect(labels).toEqual(inputs);
  });
});

it('uses up no token when a mail scanner follows its link', async () => {
  const user = await register(app);
  await app.jobsDone();
  const link = new URL(app.mails.findLast(({ to }) => to === user.email)!.link!);
  for (const method of ['GET', 'HEAD', 'OPTIONS'] as const)
    await app.server.inject({ method, url: link.pathname + link.search });
  expect((await api.post('/v1/auth/verify-email', { token: link.searchParams.get('token') })).statusCode).toBe(200);
});

it('takes no POST', async () => {
  const answer = await api.post('/account/verify-email', { token: 'abc' });
  expect(answer.statusCode).toBe(405);
});

it('serves no other file', async () => {
  for (const file of [
    'assets/',
    'assets/../verify-email.html',
    'assets/..%2f..%2f..%2fpackage.json',
    'verify-email.html',
  ]) {
    expect((await api.get(`/account/${file}`)).statusCode).toBe(404);
  }
});

it('calls operations that exist', async () => {
  const { body } = await api.get('/account/assets/account.js');
  const calls = [...body.matchAll(/call\('(\w+)', [`']([a-z/-]+)/g)].map((match) => `${match[1]} /v1/${match[2]}`);
  const document = (await api.get('/openapi.json')).json<{ paths: Record<string, Record<string, unknown>> }>();
  const known = Object.entries(document.paths).flatMap(([url, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${url}`),
  );
  expect(calls.length).toBeGreaterThan(5);
  expect(known).toEqual(expect.arrayContaining(calls));
});

it('has a page for each file of its folder', () => {
  const files = readdirSync(path.join(projectRoot, 'public', 'account')).filter((file) => file.endsWith('.html'));
  // that of sign-in has a test beside the ways to sign in, and those that end mails beside the mutes of notifications
  const elsewhere = ['sign-in', 'unsubscribe', 'unsubscribe-failed', 'unsubscribed'].map((page) => `/account/${page}`);
  expect(files.map((file) => `/account/${file.replace('.html', '')}`).sort()).toEqual([...pages, ...elsewhere].sort());
});
