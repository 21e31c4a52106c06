import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { makeIfChanged, root } from './stamp.mjs';

/**
 * Generates the Prisma client and the Pothos types from `prisma/schema`, unless nothing changed. Needs no network.
 * @param {import('./stamp.mjs').OnStep} [onStep]
 * @returns {boolean} whether it generated
 */
export function generateIfChanged(onStep) {
  const generated = {
    name: 'generate',
    doing: 'building: generating the database client',
    inputs: [
      'prisma/schema',
      'prisma.config.ts',
      'package-lock.json',
      'scripts/generate.mjs',
      'scripts/tables-generator.mjs',
    ],
    outputs: ['src/generated/prisma/client.ts', 'src/generated/pothos-prisma.ts', 'src/generated/tables.ts'],
    make: prismaGenerate,
  };
  return makeIfChanged(generated, onStep);
}

function prismaGenerate() {
  const cli = path.join(
    path.dirname(createRequire(import.meta.url).resolve('prisma/package.json')),
    'build',
    'index.js',
  );
  const run = spawnSync(process.execPath, [cli, 'generate', '--no-hints'], {
    cwd: root,
    encoding: 'utf8',
    // Generating needs no schema engine, but the CLI would download one. Naming any executable prevents that.
    env: {
      ...process.env,
      PATH: [path.join(root, 'node_modules', '.bin'), process.env.PATH].join(path.delimiter),
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      CHECKPOINT_DISABLE: '1',
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
    },
  });
  if (run.error) throw run.error;
  if (run.status !== 0) throw new Error(`prisma generate failed:\n${run.stdout}${run.stderr}`);
}

if (process.argv[1] === import.meta.filename) {
  console.log(generateIfChanged() ? 'Generated src/generated.' : 'src/generated is up to date.');
}
