// Bundles `console/` to what the service has at `/console/`: hashed files, each beside the same compressed, and the
// page that loads them. Fails when a browser would have to load too much.
import { spawnSync } from 'node:child_process';
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { makeIfChanged, root } from './stamp.mjs';

const target = path.join(root, 'public', 'console');

/** The most that a browser loads, in bytes with gzip: before the first view, and for each view. */
const FIRST_LOAD = 180_000;
const VIEW = 60_000;

/**
 * What is used of Vite's manifest.
 * @typedef {{ file: string, isEntry?: boolean, imports?: string[], css?: string[] }} Chunk
 */

/** Bundles the console, unless nothing changed. @param {import('./stamp.mjs').OnStep} [onStep] */
export function consoleIfChanged(onStep) {
  const made = {
    name: 'console',
    doing: 'building: bundling the console',
    inputs: [
      ...['src', 'index.html', 'package.json', 'tsconfig.json', 'vite.config.ts'].map((file) => `console/${file}`),
      'scripts/build-console.mjs',
      'package-lock.json',
    ],
    outputs: ['public/console/index.html'],
    make: build,
  };
  return makeIfChanged(made, onStep);
}

function build() {
  rmSync(target, { recursive: true, force: true });
  const vite = path.join(root, 'node_modules', 'vite', 'bin', 'vite.js');
  const { error, status, stdout, stderr } = spawnSync(
    process.execPath,
    [vite, 'build', '--logLevel', 'warn', '--outDir', target],
    { cwd: path.join(root, 'console'), encoding: 'utf8', env: { ...process.env, NODE_ENV: 'production' } },
  );
  if (error) throw error;
  if (status !== 0) throw new Error(`The console could not be built:\n${stdout}${stderr}`);
  // what its pages send where browsers may send registered documents only
  copyFileSync(path.join(root, 'console/src/generated/documents.json'), path.join(target, 'documents.json'));
  const sizes = compressed();
  checkSizes(sizes);
}

/** Compresses all assets, once and for all. @returns {ReadonlyMap<string, number>} their sizes with gzip */
function compressed() {
  const folder = path.join(target, 'assets');
  /** @type {Map<string, number>} */
  const sizes = new Map();
  for (const name of readdirSync(folder)) {
    const bytes = readFileSync(path.join(folder, name));
    const zipped = gzipSync(bytes, { level: 9 });
    sizes.set(`assets/${name}`, zipped.length);
    writeFileSync(path.join(folder, `${name}.gz`), zipped);
    writeFileSync(path.join(folder, `${name}.br`), brotliCompressSync(bytes));
  }
  return sizes;
}

/** @param {ReadonlyMap<string, number>} sizes */
function checkSizes(sizes) {
  const file = path.join(target, 'manifest.json');
  const chunks = /** @type {Record<string, Chunk>} */ (JSON.parse(readFileSync(file, 'utf8')));
  rmSync(file);
  /** @param {string} name @param {Set<string>} files @returns {Set<string>} */
  const filesOf = (name, files = new Set()) => {
    const chunk = chunks[name];
    if (!chunk || files.has(chunk.file)) return files;
    for (const part of [chunk.file, ...(chunk.css ?? [])]) files.add(part);
    for (const needed of chunk.imports ?? []) filesOf(needed, files);
    return files;
  };
  /** @param {Iterable<string>} files */
  const sum = (files) => [...files].reduce((total, name) => total + (sizes.get(name) ?? 0), 0);
  const entry = Object.keys(chunks).find((name) => chunks[name]?.isEntry);
  if (!entry) throw new Error('The manifest of the console has no entry.');
  const first = filesOf(entry);
  if (sum(first) > FIRST_LOAD) throw new Error(`The console loads ${sum(first)} bytes first, not ${FIRST_LOAD}.`);
  for (const name of Object.keys(chunks)) {
    const own = sum([...filesOf(name)].filter((part) => !first.has(part)));
    if (own > VIEW) throw new Error(`The console loads ${own} bytes for ${name}, not ${VIEW}.`);
  }
  return sum(first);
}

if (process.argv[1] === import.meta.filename)
  console.log(consoleIfChanged() ? 'Built public/console.' : 'public/console is up to date.');
