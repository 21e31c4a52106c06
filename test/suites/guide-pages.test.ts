// takes long: each guide has a service of its own, and runs its commands
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { guidesWithCommands, makeFolder, runPage } from '../support/doc-commands.ts';

/* The guides of the documentation up to L: `later-guide-pages` has the others, `pages` all other pages. */

let folder: string;
beforeAll(() => {
  folder = makeFolder();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const guides = guidesWithCommands.filter(({ name }) => name < 'm');
test('there are guides with commands', () => expect(guides.length).toBeGreaterThan(6));

test.each(guides)('every command of $path prints what the page says', runPage);
