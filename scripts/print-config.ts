// Writes the table of docs/operate/configuration.md from src/config.ts. With --check it writes nothing and fails when
// the table is stale.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { configVariables } from '../src/config.ts';
import { projectRoot } from '../src/paths.ts';
import { writeOrCheck } from './write-or-check.ts';

const START = '<!-- configuration: written by `npm run generate` -->';
const END = '<!-- end of configuration -->';

const file = path.join(projectRoot, 'docs/operate/configuration.md');
const page = readFileSync(file, 'utf8');
const start = page.indexOf(START);
const end = page.indexOf(END);
if (start < 0 || end < start)
  throw new Error('docs/operate/configuration.md has lost the marks of its configuration table.');
const rows = configVariables.map(
  ({ name, default: value, description }) => `| \`${name}\` | ${value} | ${description} |`,
);
const files = [
  'Each of them can also be read from a file, as Docker and Kubernetes give secrets: `NAME_FILE` is the path of the',
  'file that holds the value of `NAME`. Line feeds at its end do not count, and only one of the two may be set.',
].join('\n');
const table = ['| Variable | Default | Meaning |', '| --- | --- | --- |', ...rows].join('\n');
writeOrCheck(file, `${page.slice(0, start + START.length)}\n\n${files}\n\n${table}\n\n${page.slice(end)}`);
