// Fails when a module imports what `.dependency-cruiser.mjs` forbids, reaches other machines past the outbound client
// (`ways-out.mjs`), names a table that its group does not own and none lends it (`sql-reach.mjs`), or imports what a
// package keeps to itself (`deep-imports.mjs`), or when the check did not read all modules.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { cruise } from 'dependency-cruiser';
import { GROUPS, imports, LEVELS, options, ROOT_FILES, runtime } from '../.dependency-cruiser.mjs';
import { buildIfChanged } from './build.mjs';
import { forbiddenDeepImports } from './deep-imports.mjs';
import { forbiddenReach } from './sql-reach.mjs';
import { filesBelow, root } from './stamp.mjs';
import { forbiddenWaysOut } from './ways-out.mjs';

/**
 * @param {string[]} folders
 * @param {string} extension of the modules that must be read
 * @param {typeof imports} forbidden
 * @returns {Promise<string[]>} the problems found
 */
async function check(folders, extension, forbidden) {
  const { output } = await cruise(folders, { ...options, ruleSet: { forbidden }, validate: true, baseDir: root });
  if (typeof output === 'string') throw new Error(output);
  const { modules, summary } = output;
  const seen = new Set(modules.map(({ source }) => source));
  const sources = folders
    .flatMap((folder) => filesBelow(path.join(root, folder)))
    .map((file) => path.relative(root, file))
    .filter(
      (file) => file.endsWith(extension) && !file.startsWith('src/generated/') && !file.startsWith('rest/generated/'),
    );
  const edges = modules.flatMap(({ source, dependencies }) =>
    dependencies.map((dependency) => ({ source, dependency })),
  );
  console.log(`${folders.join(', ')}: ${sources.length} modules, ${edges.length} imports.`);
  return [
    ...summary.violations.map(
      ({ rule, from, to, cycle }) => `${rule.name}: ${from} → ${cycle?.map(({ name }) => name).join(' → ') ?? to}`,
    ),
    ...sources.filter((file) => !seen.has(file)).map((file) => `not read: ${file}`),
    ...edges
      .filter(({ dependency }) => dependency.couldNotResolve)
      .map(({ source, dependency }) => `not found: ${source} → ${dependency.module}`),
    ...forbiddenDeepImports(
      edges
        .filter(({ dependency }) => !dependency.coreModule)
        .map(({ source, dependency }) => ({ source: source.replace(/^dist\//, ''), module: dependency.module })),
    ),
    ...(edges.length === 0 ? ['no import was seen at all'] : []),
  ];
}

/**
 * The built modules that the checks of their code read.
 * @returns {{ path: string, code: string }[]}
 */
function builtModules() {
  const built = path.join(root, 'dist');
  const modules = [...filesBelow(path.join(built, 'src')), ...filesBelow(path.join(built, 'rest'))]
    .filter((file) => file.endsWith('.js') && !file.includes(`${path.sep}generated${path.sep}`))
    .map((file) => ({ path: path.relative(built, file).replaceAll(path.sep, '/'), code: readFileSync(file, 'utf8') }));
  console.log(`${modules.length} modules read for ways out and tables.`);
  if (modules.length === 0) throw new Error('No module was read for ways out and tables.');
  return modules;
}

/** @returns {string[]} what stands in `src` without a level */
function withoutLevel() {
  const known = new Set([
    ...LEVELS.flat(),
    'commands',
    'generated',
    'app.ts',
    'main.ts',
    ...ROOT_FILES.map((name) => `${name}.ts`),
  ]);
  return readdirSync(path.join(root, 'src'))
    .filter((name) => !known.has(name))
    .map((name) => `no-level: src/${name} is under no rule, give it a level in .dependency-cruiser.mjs`);
}

/** The tables behind the properties of Prisma Client. */
function modelsOfPrisma() {
  const schema = filesBelow(path.join(root, 'prisma', 'schema'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('\n');
  const models = [...schema.matchAll(/^model (\w)(\w*) \{.*?@@map\("(\w+)"\)/gms)];
  return Object.fromEntries(models.map(([, first = '', more, table]) => [first.toLowerCase() + more, table ?? '']));
}

/** @returns {Promise<string[]>} the tables of other groups that modules name, and that are not lent */
async function checkReach(/** @type {ReturnType<typeof builtModules>} */ modules) {
  const groups = await Promise.all(
    ['data', ...GROUPS].map(async (group) => {
      const file = path.join(root, 'dist', 'src', group, group === 'data' ? 'ground-tables.js' : 'tables.js');
      const { tables } = /** @type {typeof import('../src/vault/tables.ts')} */ (
        await import(pathToFileURL(file).href)
      );
      return /** @type {const} */ ([group, tables]);
    }),
  );
  return forbiddenReach(modules, Object.fromEntries(groups), modelsOfPrisma());
}

buildIfChanged();
const modules = builtModules();
const problems = [
  ...(await check(['src', 'rest'], '.ts', imports)),
  ...(await check(['dist/src', 'dist/rest'], '.js', runtime)),
  ...withoutLevel(),
  ...forbiddenWaysOut(modules),
  ...(await checkReach(modules)),
];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
