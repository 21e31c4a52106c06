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
    inputs: [`clients/${name}/src`, `clients/${name}/tsconfig.json`, `clients/${name}/package.json`],
    outputs: [`clients/${name}/dist/index.js`],
    make: () =>
      void execFileSync(process.execPath, [compiler, '-p', path.join('clients', name)], {
        cwd: root,
        stdio: ['ignore', 'inherit', 'inherit'],
      }),
  });

console.log(compileIfChanged('typescript') ? 'Built clients/typescript.' : 'clients/typescript is up to date.');
