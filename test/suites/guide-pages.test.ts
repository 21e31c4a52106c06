import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeFolder, pagesWithCommands, runPage } from '../support/doc-commands.ts';

/* The guides of the documentation: `pages` has all other pages. */

let folder: string;
beforeAll(() => {
  folder = makeFolder();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const guides = pagesWithCommands.filter(({ path }) => path.startsWith('docs/guides/'));
test('there are guides with commands', () => expect(guides.length).toBeGreaterThan(10));

test.each(guides.map((page) => [page.path, page] as const))(
  'every command of %s prints what the page says',
  (_path, page) => runPage(page),
);
