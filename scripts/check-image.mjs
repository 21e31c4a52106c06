// Builds the image of the Dockerfile with the builder that is here. Without one it says that it was
// not run: `test/scripts/release.test.ts` runs what is in the image.
import { spawnSync } from 'node:child_process';
import { root } from './stamp.mjs';

const LIMIT_MIB = 350;
const TAG = 'platform-check';

/** @param {string} program @param {readonly string[]} args */
const run = (program, args) => spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });

// each of them must also be able to work here: a client may have no daemon
const builder = ['podman', 'docker', 'buildah'].find((program) => run(program, ['info']).status === 0);
if (!builder) {
  console.log('Not run: none of podman, docker and buildah works here.');
} else {
  const { status, stdout, stderr } = run(builder, ['build', '--tag', TAG, '--file', 'Dockerfile', '.']);
  if (status !== 0) {
    console.error(`${builder} could not build the image.\n${stdout}${stderr}`);
    process.exitCode = 1;
  } else {
    const size = run(builder, [
      'inspect',
      '--format',
      '{{.Size}}',
      ...(builder === 'buildah' ? ['--type=image'] : []),
      TAG,
    ]);
    const mib = Number(size.stdout) / 2 ** 20;
    console.log(`${builder} built an image of ${Math.round(mib)} MiB.`);
    // buildah does not say the size of an image
    if (mib > LIMIT_MIB) {
      console.error(`It has more than ${LIMIT_MIB} MiB.`);
      process.exitCode = 1;
    }
  }
}
