import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { startTestApp } from '../support/app.ts';
import {
  blocksOf,
  commandsOf,
  makeFolder,
  pageAt,
  pages,
  pagesWithCommands,
  printedBy,
  registration,
  runPage,
  start,
} from '../support/doc-commands.ts';

let folder: string;
beforeAll(() => {
  folder = makeFolder();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Keys and types of a JSON value: what two answers of one kind have in common. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shapeOf(item)]));
}

// the guides: guide-pages
const others = pagesWithCommands.filter((page) => !page.path.startsWith('docs/guides/'));
test.each(others.map((page) => [page.path, page] as const))(
  'every command of %s prints what the page says',
  (_path, page) => runPage(page),
);

test('docs/start.md shows answers of the shape that the service gives', async () => {
  const own = await startTestApp();
  try {
    await own.listen();
    const shown = [...start.text.matchAll(/^```sh\n((?:(?!```).)*)^```\n```json\n(.*?)^```$/gms)];
    expect(shown.length).toBeGreaterThan(3);
    const commands = shown.map(([, block]) => commandsOf(block!)[0]!);
    const outputs = await printedBy(commands, [registration], own);
    expect(outputs.map((text) => shapeOf(JSON.parse(text)))).toEqual(
      shown.map(([, , answer]) => shapeOf(JSON.parse(answer!))),
    );
  } finally {
    await own.close();
  }
});

test('the calls of README.md succeed', async () => {
  const own = await startTestApp();
  try {
    await own.listen();
    const [first = '', ...others] = blocksOf(pageAt('README.md').text);
    const commands = others.flatMap(commandsOf);
    const answers = (await printedBy(commands, [first], own)).map((text) => JSON.parse(text) as object);
    expect(answers).toHaveLength(4);
    for (const answer of answers) {
      for (const fault of ['error', 'errors', 'detail']) expect(answer).not.toHaveProperty(fault);
    }
  } finally {
    await own.close();
  }
});

test('every link of a page leads to a file, and to a heading in it', () => {
  const anchorsOf = (text: string) =>
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );
  const broken = pages.flatMap((page) =>
    [...page.text.replaceAll(/^```.*?^```$/gms, '').matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)]
      .map(([, target]) => target!)
      .filter((target) => !/^(?:https?:|mailto:)/.test(target))
      .filter((target) => {
        const [file = '', anchor] = target.split('#');
        const at = file ? path.join(projectRoot, path.dirname(page.path), file) : path.join(projectRoot, page.path);
        if (!existsSync(at)) return true;
        return anchor !== undefined && !anchorsOf(readFileSync(at, 'utf8')).includes(anchor);
      })
      .map((target) => `${page.path}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test('every command for operators that a page names is a script of package.json', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(projectRoot, 'package.json'), 'utf8')) as { scripts: object };
  const named = pages.flatMap(({ text }) => [...text.matchAll(/npm run ([a-z:]+)/g)].map(([, name]) => name!));
  expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([]);
});
