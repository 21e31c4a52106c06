// `npm run bench:frames`: how long the frames of the console take in Chromium while long lists are scrolled and a graph
// is moved: 10,000 secrets, 100,000 activity records, 500 entities. A frame over 50 ms is one that a reader sees. Run
// it on a machine that does nothing else: the load before and after is printed.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import { withScratchDatabase } from '../scripts/scratch-database.ts';
import { buildApp } from '../src/app.ts';
import { loadConfig } from '../src/config.ts';
import { migrationsDir } from '../src/paths.ts';
import { createLogger } from '../src/platform/logger.ts';
import { createMailer } from '../src/platform/mail/mail.ts';
import { openDatabase } from '../src/platform/postgres/database.ts';
import { migrate } from '../src/platform/postgres/migrate.ts';
import { addMany } from '../test/http/console-many.ts';
import { type Account, call, register } from './api.ts';

const SECRETS = 10_000;
const RECORDS = 100_000;
const ENTITIES = 500;
/** What a frame may take. */
const SMOOTH_MS = 50;
/** Turns of the wheel, in pixels, at the pace of a hand. */
const TURNS = 200;
const TURN_PX = 400;
const TURN_MS = 25;

/** In the page: the time between frames, and tasks of more than 50 ms, from now on. */
const RECORD = `(() => {
  const seen = { frames: [], tasks: [], isOver: false };
  let last = performance.now();
  const frame = (now) => {
    seen.frames.push(now - last);
    last = now;
    if (!seen.isOver) requestAnimationFrame(frame);
  };
  requestAnimationFrame((now) => { last = now; requestAnimationFrame(frame); });
  new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask' });
  globalThis.seenFrames = seen;
})()`;
const RECORDED = '(globalThis.seenFrames.isOver = true, globalThis.seenFrames)';

interface Recorded {
  frames: number[];
  tasks: number[];
}

/** Records frames while something is done. */
async function framesOf(page: Page, name: string, work: () => Promise<void>): Promise<boolean> {
  await page.evaluate(RECORD);
  await work();
  const { frames, tasks } = (await page.evaluate(RECORDED)) as Recorded;
  const sorted = frames.toSorted((one, other) => one - other);
  const at = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0).toFixed(1);
  const slow = frames.filter((ms) => ms > SMOOTH_MS).length;
  const longest = tasks.length > 0 ? ` (longest ${Math.max(...tasks)} ms)` : '';
  console.log(
    `${name}: ${frames.length} frames, p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, ` +
      `longest ${at(1)} ms; ${slow} over ${SMOOTH_MS} ms, ${tasks.length} long tasks${longest}`,
  );
  return slow === 0;
}

async function turnWheel(page: Page): Promise<void> {
  await page.mouse.move(600, 500);
  for (let turn = 0; turn < TURNS; turn++) {
    await page.mouse.wheel(0, TURN_PX);
    await setTimeout(TURN_MS);
  }
}

async function open(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}

/** A browser in which the account has signed in. */
async function pageOf(browser: Browser, url: string, { token }: Account): Promise<Page> {
  const headers = { authorization: `Bearer ${token}`, 'x-csrf': '1', origin: url };
  const answer = await fetch(`${url}/account/session`, { method: 'POST', headers });
  const value = /session=([\w-]{43});/.exec(answer.headers.getSetCookie().join())?.[1];
  if (!value) throw new Error(`The session was answered by ${answer.status}.`);
  const context = await browser.newContext({ viewport: { width: 1_280, height: 900 } });
  await context.addCookies([{ name: 'session', value, url, httpOnly: true }]);
  return context.newPage();
}

/** Entities, each related to an earlier one. @returns the app that they are in */
async function addGraph(url: string, { token, orgId, workspaceId }: Account): Promise<string> {
  const home = `/v1/orgs/${orgId}/workspaces/${workspaceId}`;
  const app = await call<{ app_id: string }>({ url }, token, 'POST', `${home}/apps`, { name: 'Measured' });
  const nameOf = (at: number) => `Entity ${at}`;
  const numbers = Array.from({ length: ENTITIES }, (_, at) => at);
  await call({ url }, token, 'POST', `${home}/apps/${app.app_id}/namespaces/default/entities/import`, {
    entities: numbers.map((at) => ({ name: nameOf(at), entity_type: 'person', importance: (at % 10) / 20 })),
    relations: numbers.slice(1).map((at) => ({
      source: { name: nameOf(at) },
      target: { name: nameOf(Math.floor(at / 7)) },
      relation_type: 'knows',
    })),
  });
  return app.app_id;
}

async function measureViews(url: string, account: Account, appId: string): Promise<boolean> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  try {
    const page = await pageOf(browser, url, account);
    const home = `${url}/console/o/${account.orgId}/w/${account.workspaceId}`;
    const smooth: boolean[] = [];
    await open(page, `${home}/activity`);
    smooth.push(await framesOf(page, 'nothing, for comparison', () => setTimeout(2_000)));
    smooth.push(await framesOf(page, `activity, ${RECORDS} records`, () => turnWheel(page)));
    await open(page, `${home}/secrets`);
    await page.getByText('The newest 2000 secrets are shown.').waitFor();
    smooth.push(await framesOf(page, `secrets, ${SECRETS}`, () => turnWheel(page)));
    await open(page, `${home}/graph?app=${appId}`);
    await page.locator('[role=application][data-state=still]').waitFor();
    smooth.push(await framesOf(page, `graph, ${ENTITIES} entities`, () => dragAbout(page)));
    return smooth.every(Boolean);
  } finally {
    await browser.close();
  }
}

/** Moves the drawing about, and zooms. */
async function dragAbout(page: Page): Promise<void> {
  const box = await page.getByRole('application').boundingBox();
  if (!box) throw new Error('The drawing is not shown.');
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  for (let turn = 0; turn < TURNS; turn++) {
    await page.mouse.move(x + 150 * Math.sin(turn / 10), y + 100 * Math.cos(turn / 10));
    await setTimeout(TURN_MS);
  }
  await page.mouse.up();
  await page.getByRole('application').focus();
  for (const key of ['+', '+', '+', '-', '-', '-', '0']) await page.keyboard.press(key, { delay: 100 });
}

async function measure(databaseUrl: string, dataDir: string): Promise<boolean> {
  const config = loadConfig({ DATA_DIR: dataDir, DATABASE_URL: databaseUrl, PORT: '0', RATE_LIMIT_RPS: '0' });
  const logger = createLogger({ logLevel: 'error' });
  const database = openDatabase({ url: databaseUrl, poolSize: config.databasePoolSize, logger });
  const mailer = createMailer({ config, logger });
  const app = await buildApp({ config, database, mailer, logger });
  try {
    const url = await app.server.listen({ host: '127.0.0.1', port: 0 });
    const account = await register({ url });
    const send = <Body>(method: string, at: string, body: object) =>
      call<Body>({ url }, account.token, method, at, body);
    await addMany({ url: databaseUrl }, { ...account, send }, { secrets: SECRETS, records: RECORDS });
    return await measureViews(url, account, await addGraph(url, account));
  } finally {
    await app.server.close();
    await app.stop();
    mailer.close();
    await database.close();
  }
}

const load = () => `load ${os.loadavg()[0]!.toFixed(1)} on ${os.availableParallelism()} processors`;
const dataDir = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
try {
  console.log(`before: ${load()}`);
  const isSmooth = await withScratchDatabase(async (url) => {
    await migrate(url, migrationsDir);
    return measure(url, dataDir);
  });
  console.log(`after: ${load()}`);
  console.log(isSmooth ? `No frame took more than ${SMOOTH_MS} ms.` : `Some frames took more than ${SMOOTH_MS} ms.`);
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
