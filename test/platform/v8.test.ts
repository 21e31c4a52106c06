import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { projectRoot } from '../../src/paths.ts';

const module = pathToFileURL(path.join(projectRoot, 'dist', 'src', 'platform', 'v8.js')).href;
const PROGRAM = `
  import { withoutOptimizer } from '${module}';
  const optimize = withoutOptimizer();
  const busy = () => {
    let sum = 0;
    for (let n = 0; n < 3e6; n++) sum = (sum * 31 + n) | 0;
    return sum;
  };
  for (let n = 0; n < 5; n++) busy();
  console.log('started');
  optimize();
  for (let n = 0; n < 5; n++) busy();`;

it('what runs often is optimized once the service has started, and not before', () => {
  const args = ['--trace-opt', '--input-type=module', '--eval', PROGRAM];
  const [before = '', after = ''] = execFileSync(process.execPath, args, { encoding: 'utf8' }).split('started\n');
  expect(before).not.toContain('busy');
  expect(after).toContain('busy');
});
