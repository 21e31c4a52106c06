import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { BUSY, ConsoleInBrowser, open } from '../http/console-browser.ts';
import type { TestApp } from '../support/app.ts';
import { barriersOf } from '../support/barriers.ts';
import { describeInBrowser } from '../support/browser.ts';
import type { Person } from '../support/person.ts';
import { waitFor } from '../support/wait.ts';

const PIECE = 4 * 1024 * 1024;
const INTERRUPTED = 'is interrupted: the rest is sent when the line is back';

/** What reaches the service of uploads, over a line that can be cut. */
class Line {
  /** The pieces that have arrived as a whole. */
  readonly pieces: { from: number; bytes: number }[] = [];
  /** How often it was asked how much has arrived. */
  asked = 0;
  /** Addresses of uploads that a request has reached. */
  readonly addresses = new Set<string>();
  isCut = false;
  /** Cuts the line when a piece from there on begins. */
  cutAt: number | null = null;

  constructor({ server }: TestApp) {
    server.server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      const { method, url = '', headers } = request;
      if (!url.startsWith('/files/uploads/')) return;
      const from = Number(headers['upload-offset']);
      if (method === 'PATCH' && from === this.cutAt) this.isCut = true;
      if (this.isCut) return void request.socket.destroy();
      this.addresses.add(url);
      if (method === 'HEAD') this.asked += 1;
      if (method !== 'PATCH') return;
      response.on('finish', () => {
        if (response.statusCode === 204) this.pieces.push({ from, bytes: Number(headers['content-length']) });
      });
    });
  }

  /** The line is as on the first day. */
  mend(): void {
    this.isCut = false;
    this.cutAt = null;
  }

  reset(): void {
    this.mend();
    this.pieces.length = 0;
    this.asked = 0;
    this.addresses.clear();
  }
}

const fileOf = (name: string, buffer: Buffer) => ({ name, mimeType: 'application/octet-stream', buffer });

describeInBrowser('uploads of the console', () => {
  const shown = new ConsoleInBrowser();
  let app: TestApp;
  let ann: Person;
  let line: Line;
  beforeAll(() => {
    ({ app, ann } = shown.cast);
    line = new Line(app);
  });
  afterEach(async () => {
    line.reset();
    await shown.contexts.get(ann)?.setOffline(false);
    // what a browser says of a line that is cut
    const others = shown.faults.splice(0).filter((fault) => !/net::ERR_|WebSocket connection/.test(fault));
    expect(others).toEqual([]);
  });

  const artifactsOf = async () => {
    const page = await shown.pageOf(ann);
    await open(page, `${shown.homeOf(ann)}/artifacts`);
    return page;
  };
  const tabOf = async () => {
    const tab = await (await artifactsOf()).context().newPage();
    await open(tab, `${shown.homeOf(ann)}/artifacts`);
    return tab;
  };
  const isFinish = (body: string | null) => body?.includes('mutation FinishUpload') ?? false;
  /** An upload to which a piece was begun just now is left to who sends it: here it was a while ago. */
  const piecesBegunBefore = (name: string) =>
    app.database.pool.query(
      `update files set created_at = created_at - interval '1 minute' where part_of is not null and file_name = $1`,
      [name],
    );
  const choose = (page: Page, ...files: ReturnType<typeof fileOf>[]) =>
    page.getByLabel('Drop files here, or choose them:').setInputFiles(files);
  const rowOf = (page: Page, name: string) =>
    page.getByRole('list', { name: 'Files on their way' }).getByRole('listitem').filter({ hasText: name });
  const stateOf = (page: Page, name: string) => rowOf(page, name).getByRole('status');
  const keptIn = (page: Page) =>
    page.evaluate("Object.keys(sessionStorage).filter((key) => key.startsWith('console-upload'))");
  const isUploaded = (page: Page, name: string) => stateOf(page, name).getByText('is uploaded').waitFor();

  /** What the artifact of that name holds, as others download it. */
  async function contentOf(name: string): Promise<Buffer> {
    const { data } = await ann.ask<{
      namespaces: { nodes: { artifacts: { nodes: { name: string; downloadLink: { downloadUrl: string } }[] } }[] };
    }>(
      `query ($orgId: ID!, $workspaceId: ID!) { namespaces(orgId: $orgId, workspaceId: $workspaceId) {
        nodes { artifacts(first: 50) { nodes { name downloadLink { downloadUrl } } } } } }`,
      { orgId: ann.orgId, workspaceId: ann.workspaceId },
    );
    const all = data.namespaces.nodes.flatMap(({ artifacts }) => artifacts.nodes);
    const found = all.filter((artifact) => artifact.name === name);
    expect(found).toHaveLength(1);
    return Buffer.from(await (await fetch(found[0]!.downloadLink.downloadUrl)).arrayBuffer());
  }
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

  it('goes on after the line was away, and sends only the rest', async () => {
    const bytes = randomBytes(1.5 * PIECE);
    const page = await artifactsOf();
    line.cutAt = PIECE;
    await choose(page, fileOf('half.bin', bytes));
    await stateOf(page, 'half.bin').getByText(INTERRUPTED).waitFor();
    await page.context().setOffline(true);
    line.mend();
    await rowOf(page, 'half.bin').getByText('4 MiB of 6 MiB').waitFor();
    expect(await barriersOf(page)).toEqual([]);
    expect(line.pieces).toEqual([{ from: 0, bytes: PIECE }]);
    await page.context().setOffline(false);
    await isUploaded(page, 'half.bin');
    expect(line.pieces).toEqual([
      { from: 0, bytes: PIECE },
      { from: PIECE, bytes: PIECE / 2 },
    ]);
    expect(line.asked).toBeGreaterThanOrEqual(1);
    expect(digest(await contentOf('half.bin'))).toBe(digest(bytes));
    await page.getByRole('button', { name: 'half.bin', exact: true }).waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
  });

  it('finishes in a new tab what has arrived as a whole, and sends nothing of it again', async () => {
    const bytes = randomBytes(64);
    const first = await tabOf();
    await first.route('**/graphql', (route) =>
      isFinish(route.request().postData()) ? route.abort() : route.continue(),
    );
    await choose(first, fileOf('arrived.bin', bytes));
    await stateOf(first, 'arrived.bin').getByText('has failed').waitFor();
    await first.close();
    await piecesBegunBefore('arrived.bin');
    const second = await tabOf();
    await choose(second, fileOf('arrived.bin', bytes));
    await isUploaded(second, 'arrived.bin');
    expect(line.pieces).toEqual([{ from: 0, bytes: 64 }]);
    expect(digest(await contentOf('arrived.bin'))).toBe(digest(bytes));
    await second.close();
  });

  it('has an address of its own in a tab that was duplicated while the first one sends', async () => {
    const bytes = randomBytes(1.25 * PIECE);
    const first = await tabOf();
    line.cutAt = PIECE;
    await choose(first, fileOf('doubled.bin', bytes));
    await stateOf(first, 'doubled.bin').getByText(INTERRUPTED).waitFor();
    await first.route('**/files/uploads/**', (route) => route.abort());
    line.mend();
    const stored = await first.evaluate('JSON.stringify({ ...sessionStorage })');
    const second = await tabOf();
    await second.evaluate(`Object.assign(sessionStorage, ${String(stored)})`);
    await choose(second, fileOf('doubled.bin', bytes));
    await isUploaded(second, 'doubled.bin');
    expect(line.addresses.size).toBe(2);
    expect(await keptIn(second)).toEqual([]);
    await first.unrouteAll();
    await isUploaded(first, 'doubled.bin');
    expect(line.addresses.size).toBe(2);
    await Promise.all([first.close(), second.close()]);
  });

  it('begins anew what was cleared: what was stopped, and what can never be whole', async () => {
    const bytes = randomBytes(1.25 * PIECE);
    const page = await artifactsOf();
    const twoPieces = [
      { from: 0, bytes: PIECE },
      { from: PIECE, bytes: PIECE / 4 },
    ];
    const begun = async (name: string) => {
      line.cutAt = PIECE;
      await choose(page, fileOf(name, bytes));
      await stateOf(page, name).getByText(INTERRUPTED).waitFor();
      await piecesBegunBefore(name);
    };
    await begun('cleared.bin');
    await page.getByRole('button', { name: 'Stop cleared.bin' }).click();
    await page.getByRole('button', { name: 'Clear cleared.bin' }).click();
    line.reset();
    await choose(page, fileOf('cleared.bin', bytes));
    await isUploaded(page, 'cleared.bin');
    expect(line.pieces).toEqual(twoPieces);
    // a piece that is gone from the store: whatever follows makes no file of it
    await begun('broken.bin');
    await app.database.pool.query(
      `update files set storage_key = storage_key || '_gone'
       where part_of = (select id from files where file_name = 'broken.bin' and part_of is null)`,
    );
    line.mend();
    await stateOf(page, 'broken.bin').getByText('has failed').waitFor();
    await page.getByRole('button', { name: 'Clear broken.bin' }).click();
    line.reset();
    await choose(page, fileOf('broken.bin', bytes));
    await isUploaded(page, 'broken.bin');
    expect(line.pieces).toEqual(twoPieces);
    const others = shown.faults.splice(0).filter((fault) => !fault.includes('status of 503'));
    shown.faults.push(...others);
  });

  it('goes on in a new tab after the first one was closed', async () => {
    const bytes = randomBytes(1.25 * PIECE);
    const first = await tabOf();
    line.cutAt = PIECE;
    await choose(first, fileOf('closed.bin', bytes));
    await stateOf(first, 'closed.bin').getByText(INTERRUPTED).waitFor();
    await first.close();
    line.mend();
    await piecesBegunBefore('closed.bin');
    const second = await tabOf();
    await choose(second, fileOf('closed.bin', bytes));
    await isUploaded(second, 'closed.bin');
    expect(line.pieces).toEqual([
      { from: 0, bytes: PIECE },
      { from: PIECE, bytes: PIECE / 4 },
    ]);
    expect(digest(await contentOf('closed.bin'))).toBe(digest(bytes));
    await second.close();
  });

  it('goes on in a page that was loaded again, when the same file is chosen', async () => {
    const bytes = randomBytes(1.25 * PIECE);
    const page = await artifactsOf();
    line.cutAt = PIECE;
    await choose(page, fileOf('again.bin', bytes));
    await stateOf(page, 'again.bin').getByText(INTERRUPTED).waitFor();
    await page.reload();
    line.mend();
    // another file of that name and size is another file
    const other = randomBytes(bytes.length);
    await choose(page, fileOf('again.bin', other));
    await isUploaded(page, 'again.bin');
    expect([line.asked, line.addresses.size]).toEqual([0, 2]);
    expect(digest(await contentOf('again.bin'))).toBe(digest(other));
    await page.getByRole('button', { name: 'Clear again.bin' }).click();
    const before = line.pieces.length;
    await choose(page, fileOf('again.bin', bytes));
    await isUploaded(page, 'again.bin');
    expect([line.asked, line.addresses.size]).toEqual([1, 2]);
    expect(line.pieces.slice(before)).toEqual([{ from: PIECE, bytes: PIECE / 4 }]);
  });

  it('sends two files at a time, stops and goes on, and keeps them while other views are shown', async () => {
    const page = await artifactsOf();
    line.isCut = true;
    const names = ['one.txt', 'two.txt', 'three.txt'];
    await choose(page, ...names.map((name) => fileOf(name, Buffer.from(`what ${name} has`))));
    for (const name of ['one.txt', 'two.txt']) await stateOf(page, name).getByText(INTERRUPTED).waitFor();
    expect(await stateOf(page, 'three.txt').textContent()).toBe('waits');
    await page.getByRole('button', { name: 'Stop two.txt' }).click();
    await stateOf(page, 'two.txt').getByText('is stopped').waitFor();
    await stateOf(page, 'three.txt').getByText(INTERRUPTED).waitFor();
    await page.getByRole('link', { name: 'Secrets' }).click();
    await page.getByRole('heading', { level: 1, name: 'Secrets' }).waitFor();
    line.mend();
    await page.getByRole('link', { name: 'Artifacts' }).click();
    for (const name of ['one.txt', 'three.txt']) await isUploaded(page, name);
    expect(await stateOf(page, 'two.txt').textContent()).toBe('is stopped');
    await page.getByRole('button', { name: 'Go on with two.txt' }).click();
    await isUploaded(page, 'two.txt');
    for (const name of names) expect((await contentOf(name)).toString()).toBe(`what ${name} has`);
    // twice the same file: two uploads
    line.reset();
    const twin = fileOf('twin.txt', Buffer.from('twice'));
    await choose(page, twin, twin);
    await waitFor(async () =>
      expect(await rowOf(page, 'twin.txt').getByRole('status').allTextContents()).toEqual([
        'is uploaded',
        'is uploaded',
      ]),
    );
    expect(line.addresses.size).toBe(2);
  });

  it('goes on with a file that is chosen again beside its row', async () => {
    const bytes = randomBytes(1.25 * PIECE);
    const page = await artifactsOf();
    line.cutAt = PIECE;
    await choose(page, fileOf('beside.bin', bytes));
    await stateOf(page, 'beside.bin').getByText(INTERRUPTED).waitFor();
    await page.getByRole('button', { name: 'Stop beside.bin' }).click();
    await stateOf(page, 'beside.bin').getByText('is stopped').waitFor();
    line.mend();
    await choose(page, fileOf('beside.bin', bytes));
    await isUploaded(page, 'beside.bin');
    expect(await rowOf(page, 'beside.bin').count()).toBe(1);
    expect(line.addresses.size).toBe(1);
    expect(line.pieces).toEqual([
      { from: 0, bytes: PIECE },
      { from: PIECE, bytes: PIECE / 4 },
    ]);
    expect(digest(await contentOf('beside.bin'))).toBe(digest(bytes));
  });

  it('keeps the address of the first of two equal files, whatever becomes of the second', async () => {
    const page = await artifactsOf();
    line.isCut = true;
    const twin = fileOf('equal.txt', Buffer.from('the same'));
    await choose(page, twin, twin);
    const second = rowOf(page, 'equal.txt').nth(1);
    for (const row of [rowOf(page, 'equal.txt').nth(0), second])
      await row.getByRole('status').getByText(INTERRUPTED).waitFor();
    const kept = await keptIn(page);
    expect(kept).toHaveLength(1);
    await second.getByRole('button', { name: 'Stop equal.txt' }).click();
    await second.getByRole('button', { name: 'Clear equal.txt' }).click();
    await second.waitFor({ state: 'detached' });
    expect(await keptIn(page)).toEqual(kept);
    line.mend();
    await isUploaded(page, 'equal.txt');
    expect(await keptIn(page)).toEqual([]);
  });

  it('makes one artifact of a file, also if the answer to that is lost', async () => {
    const page = await artifactsOf();
    await page.route('**/graphql', async (route) => {
      if (!isFinish(route.request().postData())) return route.continue();
      await route.fetch();
      await route.abort();
    });
    const file = fileOf('lost.txt', Buffer.from('arrived'));
    await choose(page, file);
    await stateOf(page, 'lost.txt').getByText('has failed').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Go on with lost.txt' }).click();
    await isUploaded(page, 'lost.txt');
    expect((await contentOf('lost.txt')).toString()).toBe('arrived');
    expect(await keptIn(page)).toEqual([]);
  });

  it('sends nothing again of a file that has arrived when the service is too busy to finish it', async () => {
    const page = await artifactsOf();
    await page.route('**/graphql', (route) =>
      isFinish(route.request().postData()) ? route.fulfill(BUSY) : route.continue(),
    );
    await choose(page, fileOf('busy.bin', randomBytes(PIECE)));
    await stateOf(page, 'busy.bin').getByText('has failed').waitFor();
    await rowOf(page, 'busy.bin').getByText('Too many requests.').waitFor();
    await page.unrouteAll();
    const before = line.pieces.length;
    await page.getByRole('button', { name: 'Go on with busy.bin' }).click();
    await isUploaded(page, 'busy.bin');
    expect(line.pieces.length).toBe(before);
    shown.forgetAnswers();
  });

  it('says what the service refuses, and a later try begins anew', async () => {
    const page = await artifactsOf();
    await choose(page, fileOf('empty.txt', Buffer.alloc(0)));
    await stateOf(page, 'empty.txt').getByText('has failed').waitFor();
    await rowOf(page, 'empty.txt').getByRole('alert').waitFor();
    await page.getByRole('button', { name: 'Clear empty.txt' }).click();
    await rowOf(page, 'empty.txt').waitFor({ state: 'detached' });
  });

  it('leaves no address to somebody else in the tab, who signed in elsewhere', async () => {
    await artifactsOf();
    const page = await shown.pageOf(shown.cast.bob);
    await open(page, `${shown.homeOf(ann)}/artifacts`);
    line.isCut = true;
    await choose(page, fileOf('theirs.bin', randomBytes(64)));
    await stateOf(page, 'theirs.bin').getByText(INTERRUPTED).waitFor();
    expect(await keptIn(page)).toHaveLength(1);
    await page.context().clearCookies();
    await page.context().addCookies(await shown.contexts.get(ann)!.cookies());
    await open(page, `${shown.homeOf(ann)}/artifacts`);
    await waitFor(async () => expect(await keptIn(page)).toEqual([]));
  });

  it('leaves no address to whoever signs in next', async () => {
    const page = await artifactsOf();
    line.isCut = true;
    await choose(page, fileOf('left.bin', randomBytes(64)));
    await stateOf(page, 'left.bin').getByText(INTERRUPTED).waitFor();
    expect(await keptIn(page)).toHaveLength(1);
    await page.locator('.account summary').click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL(/\/account\/sign-in\?return_to=/);
    expect(await keptIn(page)).toEqual([]);
  });
});
