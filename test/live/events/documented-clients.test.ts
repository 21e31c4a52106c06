import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../../src/paths.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { describeInBrowser, launchBrowser } from '../../support/browser.ts';
import { type Person, register } from '../../support/person.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';
import { waitFor } from '../../support/wait.ts';

const section = readFileSync(path.join(projectRoot, 'docs/guides/live-events.md'), 'utf8').split(
  '\n## In a client\n',
)[1]!;
const blockIn = (language: string) => new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(section)![1]!;

let app: TestApp;
let front: TargetServer;
let ann: Person;
beforeAll(async () => {
  front = await startTarget((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(blockIn('html')),
  );
  app = await startTestApp({ env: { CORS_ORIGINS: `http://127.0.0.1:${front.port}` } });
  await app.listen();
  ann = await register(app, { name: 'ann' });
});
afterAll(async () => {
  await app.close();
  await front.close();
});

const change = async (name: string) =>
  expect((await ann.call('POST', `${ann.home}/namespaces`, { name })).status).toBe(201);
const streams = (count: number) => waitFor(() => expect(app.services.tail.size).toBe(count));

test('the program of the guide goes on after its socket broke, with every event once', async () => {
  const env = { ...process.env, B: app.url, TOKEN: ann.accessToken, ORG: ann.orgId, WS: ann.workspaceId };
  const child = spawn(process.execPath, ['--input-type=module', '-e', blockIn('js')], {
    cwd: projectRoot,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const seen: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => seen.push(line));
  const made = () => seen.filter((line) => line === 'namespace.created').length;
  try {
    await waitFor(() => expect(seen).toContain('connected'));
    await change('one');
    await waitFor(() => expect(made()).toBe(1));
    for (const socket of app.server.websocketServer.clients) socket.terminate();
    await streams(0);
    await change('two');
    await change('three');
    await waitFor(() => expect(made()).toBe(3));
    await change('four');
    await waitFor(() => expect(made()).toBe(4));
  } finally {
    child.kill();
    await closed;
  }
  await streams(0);
});

describeInBrowser('in a browser', () => {
  test('the page of the guide shows events, and goes on after its stream broke, with every event once', async () => {
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      const place = { service: app.url, org: ann.orgId, ws: ann.workspaceId, token: ann.accessToken };
      await page.goto(`http://127.0.0.1:${front.port}/live.html#${new URLSearchParams(place).toString()}`);
      const shown = async () =>
        (await page.locator('li').allTextContents()).filter((text) => text.includes('namespace.created'));
      await streams(1);
      await change('five');
      await waitFor(async () => expect((await shown()).length).toBe(1));
      app.server.server.closeAllConnections();
      await streams(0);
      await change('six');
      await waitFor(async () => expect((await shown()).length).toBe(2));
      await change('seven');
      await waitFor(async () => expect((await shown()).length).toBe(3));
      expect(new Set(await shown()).size).toBe(3);
    } finally {
      await browser.close();
    }
  });
});
