// Compiles the packages in clients/, unless nothing changed: `npm run clients`. The service needs none of them; tests
// use them as a program would that installed them.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { makeIfChanged, root } from './stamp.mjs';

const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');

/** @param {string} name @returns {boolean} whether it was compiled */
const compileIfChanged = (name) =>
  makeIfChanged({
    name: `client-${name}`,
    doing: `compiling clients/${name}`,
    inputs: ['clients/typescript', 'clients/cli'].flatMap((folder) =>
      ['src', 'tsconfig.json', 'package.json'].map((part) => `${folder}/${part}`),
    ),
    outputs: [`clients/${name}/dist/index.js`],
    make: () =>
      void execFileSync(process.execPath, [compiler, '-p', path.join('clients', name)], {
        cwd: root,
        stdio: ['ignore', 'inherit', 'inherit'],
      }),
  });

// the second one is compiled against what the first one became
for (const name of ['typescript', 'cli'])
  console.log(compileIfChanged(name) ? `Built clients/${name}.` : `clients/${name} is up to date.`);
