// Fails when two modules declare one name, of which at least one is exported, or when a private word comes back
// (`names.mjs`). One word has one meaning: docs/contribute/glossary.md.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { problemsOfNames } from './names.mjs';
import { filesBelow, root } from './stamp.mjs';

const modules = ['src', 'rest']
  .flatMap((folder) => filesBelow(path.join(root, folder)))
  .map((file) => ({ path: path.relative(root, file).replaceAll(path.sep, '/'), file }))
  .filter(({ path: name }) => name.endsWith('.ts') && !name.includes('/generated/'))
  .map(({ path: name, file }) => ({ path: name, text: readFileSync(file, 'utf8') }));
if (modules.length === 0) throw new Error('There are no modules to check.');
const problems = problemsOfNames(modules);
for (const problem of problems) console.error(problem);
console.log(`${modules.length} modules, ${problems.length} names with two meanings or of nobody else.`);
process.exit(problems.length === 0 ? 0 : 1);
