import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

let app: TestApp;
let production: TestApp;
let folder: string;
beforeAll(async () => {
  app = await startTestApp({ env: { SUPPORT_CONTACT: 'help@example.test' } });
  await app.listen();
  production = await startTestApp({ env: { NODE_ENV: 'production', PUBLIC_URL: 'https://platform.example.test/' } });
  folder = mkdtempSync(path.join(os.tmpdir(), 'start-page-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await Promise.all([app.close(), production.close()]);
});

const page = async (of: TestApp, host = 'localhost:4000') =>
  of.server.inject({ url: '/', headers: { accept: BROWSER, host } });

/** What a reader copies: the text of each block of code. */
const commandsOf = (html: string) =>
  [...html.matchAll(/<pre[^>]*><code>([\s\S]*?)<\/code>/g)].map(([, text = '']) =>
    text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
  );

/** A curl of our own, for machines without: `-s`, `-H`, `-d` and a URL. */
const CURL = `#!${process.execPath}
const [headers, rest] = [{}, process.argv.slice(2)];
let body, url;
while (rest.length > 0) {
  const word = rest.shift();
  if (word === '-H') { const [name, value] = rest.shift().split(': '); headers[name] = value; }
  else if (word === '-d') body = rest.shift();
  else if (word !== '-s') url = word;
}
fetch(url, { headers, body, method: body === undefined ? 'GET' : 'POST' })
  .then((answer) => answer.text()).then((text) => process.stdout.write(text + '\\n'));
`;

function shell(script: string): Promise<string> {
  writeFileSync(path.join(folder, 'curl'), CURL, { mode: 0o755 });
  const child = spawn('sh', ['-c', script], { env: { PATH: `${folder}${path.delimiter}${process.env.PATH}` } });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  return new Promise((resolve, reject) => child.on('error', reject).on('close', () => resolve(output)));
}

describe('the start page', () => {
  it('is what a browser gets, with links that all lead somewhere', async () => {
    const answer = await page(app);
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(answer.headers.vary).toMatch(/accept/i);
    const links = [...answer.body.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, url = '']) => url);
    for (const url of [
      '/console/',
      '/graphql',
      '/docs/',
      '/docs/api',
      '/account/sign-in',
      '/openapi.json',
      '/healthz',
      '/readyz',
      '/metrics',
    ])
      expect(links).toContain(url);
    for (const url of links)
      expect((await app.server.inject({ url, headers: { accept: BROWSER } })).statusCode, url).toBeLessThan(400);
  });

  it('runs nothing, loads nothing from outside and is framed by nobody', async () => {
    const { headers, body } = await page(app);
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(body).not.toMatch(/<script|<style|style="|\son\w+="/);
    expect(body).not.toMatch(/(?:href|src)="(?:https?:)?\/\//);
  });

  it.each([
    ['*/*', 'json'],
    [undefined, 'json'],
    ['application/json', 'json'],
    ['application/json, text/html;q=0.9', 'json'],
    ['text/html;q=0', 'json'],
    ['text/html', 'html'],
    ['text/html, */*', 'html'],
  ])('for accept %s is %s', async (accept, kind) => {
    const answer = await app.server.inject({ url: '/', headers: accept ? { accept } : {} });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers.vary).toMatch(/accept/i);
    expect(answer.headers['content-type']).toMatch(kind === 'json' ? /^application\/json/ : /^text\/html/);
  });

  it('is a list of links for programs, that all lead somewhere', async () => {
    const { name, version, ...links } = (await (await fetch(app.url)).json()) as Record<string, string>;
    expect([name, version]).toEqual(['Platform management API', '0.1.0']);
    expect(links).toMatchObject({ documentation: `${app.url}/docs/`, openapi: `${app.url}/openapi.json` });
    for (const [what, url] of Object.entries(links).filter(([key]) => key !== 'rest' && key !== 'graphql')) {
      expect((await fetch(url)).status, what).toBe(200);
    }
    const of = (await production.server.inject('/')).json<Record<string, string>>();
    expect(of.graphql).toBe('https://platform.example.test/graphql');
  });

  it('says in the OpenAPI document who helps: whom the operator names, otherwise the documentation', async () => {
    const contacts = [app, production].map(async ({ server }) => {
      const { info } = (await server.inject('/openapi.json')).json<{ info: { contact: unknown } }>();
      return info.contact;
    });
    expect(await Promise.all(contacts)).toEqual([
      { name: 'Support', email: 'help@example.test' },
      { name: 'Documentation', url: 'https://platform.example.test/docs/' },
    ]);
  });

  it('knows no other method', async () => {
    for (const method of ['POST', 'DELETE'] as const) {
      const answer = await app.server.inject({ method, url: '/', headers: { accept: BROWSER } });
      expect([answer.statusCode, answer.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    }
  });

  it('shows calls against its own origin, and no host that could break out', async () => {
    expect((await page(app, 'my-host:8080')).body).toContain('curl -s http://my-host:8080/graphql');
    for (const host of ['x$(id)', 'x"><script>', "x';id;'"]) {
      const { body } = await page(app, host);
      expect(body).not.toContain(host);
      expect(body).toContain(`curl -s ${app.url}/graphql`);
    }
    expect((await page(production)).body).toContain('curl -s https://platform.example.test/graphql');
  });

  it('does not offer GraphiQL where it is off', async () => {
    expect((await page(production)).body).not.toContain('GraphiQL');
  });

  it('has three calls that work as they are', async () => {
    const commands = commandsOf((await page(app, new URL(app.url).host)).body);
    expect(commands).toHaveLength(3);
    const output = await shell(commands.join('\n'));
    const [workspace, answer] = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(workspace).toMatchObject({ name: 'Research' });
    expect(answer).toEqual({
      data: {
        me: {
          username: 'kim',
          organizations: {
            nodes: [
              {
                name: "kim's organization",
                workspaces: { nodes: [{ name: 'Research' }, { name: 'Default workspace' }] },
              },
            ],
          },
        },
      },
    });
  });
});
