import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { generateIfChanged } from './generate.mjs';
import { isCurrent, makeIfChanged, root } from './stamp.mjs';

/** What `npm start` runs. */
export const builtService = path.join(root, 'dist', 'service', 'main.js');

const built = {
  name: 'build',
  inputs: ['src', 'rest', 'tsconfig.json', 'tsconfig.build.json', 'rolldown.config.mjs', 'package-lock.json'],
  outputs: ['dist/src/main.js', 'dist/service/main.js'],
};

/** Whether {@link builtService} is what the sources say now. */
export const isBuilt = () => isCurrent(built);

/**
 * Runs the generators, compiles `src` and `rest` to `dist` and bundles the service, unless nothing changed.
 * @returns {boolean} whether it built
 */
export function buildIfChanged() {
  generateIfChanged();
  return makeIfChanged({ ...built, make: build });
}

function build() {
  rmSync(path.join(root, 'dist'), { recursive: true, force: true }); // it may have modules of deleted sources
  run('tsc', ['-p', 'tsconfig.build.json']);
  run('rolldown', ['-c', 'rolldown.config.mjs', '--logLevel', 'warn']);
}

/**
 * @param {string} tool
 * @param {readonly string[]} args
 */
function run(tool, args) {
  const file = path.join(root, 'node_modules', '.bin', tool);
  if (!existsSync(file)) throw new Error(`${tool} is not installed. Run \`npm ci --include=dev\`.`);
  const { error, status, stdout, stderr } = spawnSync(file, args, {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`The build failed:\n${stdout}${stderr}`);
}

if (process.argv[1] === import.meta.filename) {
  console.log(buildIfChanged() ? 'Built dist.' : 'dist is up to date.');
}
