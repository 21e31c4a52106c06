// Builds the image of the Dockerfile with the builder that is here. Without one it says that it was
// not run: `test/scripts/release.test.ts` runs what is in the image.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { root } from './stamp.mjs';

const LIMIT_MIB = 350;
const TAG = 'platform-check';

/** @param {string} program @param {readonly string[]} args */
const run = (program, args) => spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });

/** @param {string} problem */
function fail(problem) {
  console.error(problem);
  process.exitCode = 1;
}

// each of them must also be able to work here: a client may have no daemon
const builder = ['podman', 'docker', 'buildah'].find((program) => run(program, ['info']).status === 0);
// where no registry of images is reached, an image that has Node can be made of packages (docs/operate/install.md)
const base = process.env.IMAGE_BASE ?? /^ARG NODE=(\S+)$/m.exec(readFileSync(`${root}/Dockerfile`, 'utf8'))?.[1] ?? '';
const isThere = (/** @type {string} */ program) =>
  run(program, ['inspect', ...(program === 'buildah' ? ['--type=image'] : []), base]).status === 0 ||
  run(program, ['pull', base]).status === 0;

/** @param {string} program */
function check(program) {
  // the format of OCI has no health check
  const format = program === 'docker' ? [] : ['--format', 'docker'];
  const asked = ['build', ...format, '--build-arg', `NODE=${base}`, '--tag', TAG, '--file', 'Dockerfile', '.'];
  const { status, stdout, stderr } = run(program, asked);
  if (status !== 0) return fail(`${program} could not build the image.\n${stdout}${stderr}`);
  const mib = sizeBy(program) / 2 ** 20;
  console.log(`${program} built an image of ${Math.round(mib)} MiB.`);
  if (!(mib <= LIMIT_MIB)) fail(`It has more than ${LIMIT_MIB} MiB.`);
}

/** The bytes of the image. @param {string} program */
function sizeBy(program) {
  if (program !== 'buildah') return Number(run(program, ['inspect', '--format', '{{.Size}}', TAG]).stdout);
  // it does not say the bytes of an image: those of a mount of it
  const container = run(program, ['from', TAG]).stdout.trim();
  const place = run(program, ['mount', container]).stdout.trim();
  const bytes = Number(run('du', ['-sb', place]).stdout.split('\t')[0]);
  run(program, ['rm', container]);
  return bytes;
}

if (!builder) console.log('Not run: none of podman, docker and buildah works here.');
else if (!isThere(builder)) console.log(`Not run: ${builder} cannot fetch ${base} here.`);
else check(builder);
