// Writes the configuration table of README.md from src/config.ts. With --check it writes nothing and fails when the
// table is stale.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { configVariables } from '../src/config.ts';
import { projectRoot } from '../src/paths.ts';
import { writeOrCheck } from './write-or-check.ts';

const START = '<!-- configuration: written by `npm run generate` -->';
const END = '<!-- end of configuration -->';

const file = path.join(projectRoot, 'README.md');
const readme = readFileSync(file, 'utf8');
const start = readme.indexOf(START);
const end = readme.indexOf(END);
if (start < 0 || end < start) throw new Error('README.md has lost the marks of its configuration table.');
const rows = configVariables.map(
  ({ name, default: value, description }) => `| \`${name}\` | ${value} | ${description} |`,
);
const table = ['| Variable | Default | Meaning |', '| --- | --- | --- |', ...rows].join('\n');
writeOrCheck(file, `${readme.slice(0, start + START.length)}\n\n${table}\n\n${readme.slice(end)}`);
