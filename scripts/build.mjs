import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { generateIfChanged } from './generate.mjs';
import { makeIfChanged, root } from './stamp.mjs';

/**
 * Runs the generators and compiles `src` and `rest` to `dist`, unless nothing changed.
 * @returns {boolean} whether it compiled
 */
export function buildIfChanged() {
  generateIfChanged();
  return makeIfChanged({
    name: 'build',
    inputs: ['src', 'rest', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'],
    outputs: ['dist/src/main.js'],
    make: compile,
  });
}

function compile() {
  const tsc = path.join(root, 'node_modules', '.bin', 'tsc');
  if (!existsSync(tsc)) throw new Error('The compiler is not installed. Run `npm ci --include=dev`.');
  rmSync(path.join(root, 'dist'), { recursive: true, force: true }); // it may have modules of deleted sources
  const run = spawnSync(tsc, ['-p', 'tsconfig.build.json'], {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  if (run.error) throw run.error;
  if (run.status !== 0) throw new Error(`The build failed:\n${run.stdout}${run.stderr}`);
}

if (process.argv[1] === import.meta.filename) {
  console.log(buildIfChanged() ? 'Built dist.' : 'dist is up to date.');
}
