import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { consoleIfChanged } from './build-console.mjs';
import { docsIfChanged } from './build-docs.mjs';
import { generateIfChanged } from './generate.mjs';
import { isCurrent, makeIfChanged, root } from './stamp.mjs';

/**
 * An entry of the bundle: `main` is the service, the others are commands.
 * @param {string} name
 */
export const builtEntry = (name) => path.join(root, 'dist', 'service', `${name}.js`);

const built = {
  name: 'build',
  inputs: [
    'src',
    'rest',
    'tsconfig.json',
    'tsconfig.build.json',
    'rolldown.config.mjs',
    'scripts/check-built.mjs',
    'package-lock.json',
  ],
  outputs: [
    'dist/src/main.js',
    ...['main', 'vault', 'files', 'documents', 'doctor', 'backup', 'restore', 'adopt', 'keys-rotate'].map(
      (name) => `dist/service/${name}.js`,
    ),
    ...[
      'extraction-process',
      'extraction-guard',
      'check-thread',
      'read-thread',
      'transform-thread',
      'answer-thread',
    ].map((name) => `dist/service/${name}.js`),
    'dist/service/checks.json',
  ],
};

/** Whether `dist` is what the sources say now. */
export const isBuilt = () => isCurrent(built);

/**
 * Runs the generators, renders the documentation, bundles the console, compiles `src` and `rest` to `dist`,
 * bundles the service and checks its data files, unless nothing changed.
 * @param {import('./stamp.mjs').OnStep} [onStep]
 * @returns {boolean} whether it built
 */
export function buildIfChanged(onStep = () => undefined) {
  generateIfChanged(onStep);
  docsIfChanged(onStep);
  consoleIfChanged(onStep);
  return makeIfChanged({ ...built, doing: 'building: compiling', make: () => build(onStep) }, onStep);
}

/** @param {import('./stamp.mjs').OnStep} onStep */
function build(onStep) {
  rmSync(path.join(root, 'dist'), { recursive: true, force: true }); // it may have modules of deleted sources
  // `npm run typecheck` checks the types, which takes several times as long as this
  run('tsc', ['-p', 'tsconfig.build.json', '--noCheck']);
  onStep('building: bundling');
  run('rolldown', ['-c', 'rolldown.config.mjs', '--logLevel', 'warn']);
  onStep('building: checking the bundle');
  runToEnd(process.execPath, [path.join('scripts', 'check-built.mjs')]);
}

/**
 * @param {string} tool
 * @param {readonly string[]} args
 */
function run(tool, args) {
  const file = path.join(root, 'node_modules', '.bin', tool);
  if (!existsSync(file)) throw new Error(`${tool} is not installed. Run \`npm ci --include=dev\`.`);
  runToEnd(file, args, process.platform === 'win32');
}

/**
 * @param {string} file
 * @param {readonly string[]} args
 */
function runToEnd(file, args, shell = false) {
  const { error, status, stdout, stderr } = spawnSync(file, args, { cwd: root, encoding: 'utf8', shell });
  if (error) throw error;
  if (status !== 0) throw new Error(`The build failed:\n${stdout}${stderr}`);
}

if (process.argv[1] === import.meta.filename) {
  console.log(buildIfChanged() ? 'Built dist.' : 'dist is up to date.');
}
