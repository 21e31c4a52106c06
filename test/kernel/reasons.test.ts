import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';

const REASONS = [/conflict\(\s*(?:'\w+'|[\w.]+),\s*[^,]+?,\s*'([a-z_]+)'/g, /\breason: '([a-z_]+)'/g];
const CODES = /(?:details: \{|readonly) code: ((?:'[a-z_]+'(?: \| )?)+)/g;

test('every reason of an error, and every code of a test call, is documented', () => {
  const documented = readFileSync(path.join(projectRoot, 'docs/api/errors.md'), 'utf8');
  const found = ['src', 'rest']
    .flatMap((folder) =>
      readdirSync(path.join(projectRoot, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
        path.join(projectRoot, folder, file),
      ),
    )
    .filter((file) => file.endsWith('.ts') && !file.includes('generated'))
    .flatMap((file) => {
      const text = readFileSync(file, 'utf8');
      const codes = [...text.matchAll(CODES)].flatMap(([, list]) => list!.match(/[a-z_]+/g)!);
      return [...REASONS.flatMap((reason) => [...text.matchAll(reason)].map(([, word]) => word!)), ...codes];
    });
  expect(found).toEqual(expect.arrayContaining(['invalid_status', 'builtin_tool', 'tool_disabled', 'dry_run']));
  expect([...new Set(found)].filter((word) => !documented.includes(`\`${word}\``))).toEqual([]);
});
