// Writes a plain resource: `npm run new:resource -- field_note --group knowledge --in app`. See
// docs/contribute/add-a-resource.md.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type ResourceWord, resources } from '../src/kernel/resources.ts';
import { projectRoot } from '../src/paths.ts';
import { withMember, withResource } from './new-resource/insertions.ts';
import { namingOf } from './new-resource/naming.ts';
import { type PlainPlace, styles } from './new-resource/places.ts';
import {
  anOrA,
  declaration,
  graphSource,
  migrationEnd,
  type NewResource,
  prismaModel,
  restSource,
  serviceSource,
  testSource,
} from './new-resource/sources.ts';

const USAGE = `Usage: npm run new:resource -- NAME --group GROUP [--in PLACE] [--about SENTENCE] [--prefix PREFIX]
  NAME    one noun in the singular: field_note
  GROUP   a folder of src with a tables.ts: knowledge
  PLACE   ${Object.keys(styles).join(', ')}; default workspace
  PREFIX  what identifiers begin with; default from the name`;

const resource = readArguments();
const { naming, group, place } = resource;
const { prisma, parent, root } = styles[place];
const at = (...parts: string[]) => path.join(projectRoot, ...parts);
const folder = at('src', group, naming.folder);
const refused = [folder, at('rest/operations/additions', `${naming.folder}.graphql`)].find((file) => existsSync(file));
if (refused) fail(`${path.relative(projectRoot, refused)} is there already.`);

const groupModels = at('prisma/schema', `${group}.prisma`);
const written: string[] = [];

edit('src/kernel/resources.ts', (text) => withResource(text, declaration(resource)));
write(groupModels, `${existsSync(groupModels) ? read(groupModels) : ''}${prismaModel(resource)}`.trimStart());
edit(`prisma/schema/${prisma}`, (text) => withMember(text, `model ${parent} {`, `  ${naming.list} ${naming.type}[]`));
write(path.join(folder, `${naming.file}.service.ts`), serviceSource(resource));
write(path.join(folder, `${naming.file}.graph.ts`), graphSource(resource));
edit(`src/${group}/tables.ts`, (text) => withMember(text, 'owns: [', `    '${naming.table}',`, ']'));
edit(`src/wiring/${group}.ts`, (text) =>
  withMember(
    `import { ${naming.type}Service } from '../${group}/${naming.folder}/${naming.file}.service.ts';\n${text}`,
    'open: {',
    `      ${naming.list}: new ${naming.type}Service(deps),`,
  ),
);
edit('src/wiring/schema.ts', (text) =>
  text.replace('// adds to all types above', `import '../${group}/${naming.folder}/${naming.file}.graph.ts';\n$&`),
);
write(at('rest/operations/additions', `${naming.folder}.graphql`), restSource(resource));
write(at('test', group, naming.folder, `${naming.file}.test.ts`), testSource(resource));

const { nextMigration, writeMigration } = await import('./next-migration.ts');
const sql = await nextMigration();
written.push(writeMigration(`add_${naming.table}`, `${sql}\n${migrationEnd(resource)}`));

run(
  'node_modules/.bin/biome',
  'check',
  '--write',
  '--log-level=error',
  ...written.filter((file) => !/\.(prisma|sql)$/.test(file)),
);
const files = written.map((file) => `  ${path.relative(projectRoot, file)}`).join('\n');
console.log(`Wrote ${anOrA(naming.noun)} in ${anOrA(root)}:
${files}
Next: say in each description what it is for, add its own fields, and run \`npm run generate\`.`);

function readArguments(): NewResource {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      group: { type: 'string' },
      in: { type: 'string', default: 'workspace' },
      about: { type: 'string' },
      prefix: { type: 'string' },
    },
  });
  const [name, ...others] = positionals;
  const { group: given, in: where, about, prefix } = values;
  if (!name || others.length > 0 || !given) fail(USAGE);
  if (!existsSync(path.join(projectRoot, 'src', given, 'tables.ts'))) fail(`src/${given} is no group.\n${USAGE}`);
  if (!Object.hasOwn(styles, where)) fail(`Nothing plain is in ${anOrA(where)}.\n${USAGE}`);
  const taken = new Set(Object.values(resources).flatMap((one) => ('prefix' in one ? [one.prefix as string] : [])));
  try {
    const names = namingOf(name, taken, prefix);
    if (Object.hasOwn(resources, names.word))
      fail(`There is a resource '${names.word satisfies string as ResourceWord}'.`);
    const kind = where as PlainPlace;
    const sentence = about ?? `${names.type.charAt(0)}${names.noun.slice(1)}.`;
    return { naming: names, group: given, place: kind, about: sentence.replaceAll("'", '’') };
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
  }
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}

function write(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  written.push(file);
}

function edit(file: string, change: (text: string) => string): void {
  const full = at(file);
  const before = read(full);
  const after = change(before);
  if (after === before) fail(`${file} has another form than expected: nothing was added to it.`);
  write(full, after);
}

function run(tool: string, ...args: string[]): void {
  execFileSync(at(tool), args, { cwd: projectRoot, stdio: 'inherit' });
}
