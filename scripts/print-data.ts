// Writes docs/contribute/data.md, the diagram of the tables, from prisma/schema and the `tables.ts` of each group. With
// --check it writes nothing and fails when the file is stale.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../src/paths.ts';
import { writeOrCheck } from './write-or-check.ts';

interface Table {
  name: string;
  /** The tables whose end is also its end. */
  partOf: string[];
  /** Other tables that it names. */
  names: string[];
}

const MODEL = /^model (\w+) \{\n([\s\S]*?)^\}/gm;
const RELATION = /^\s+\w+\s+(\w+)\??\s+@relation\((.*)\)/gm;

/** @returns all tables in the order of the schema */
function readTables(): Table[] {
  const folder = path.join(projectRoot, 'prisma', 'schema');
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.prisma'))
    .sort();
  const models = files.flatMap((file) => [...readFileSync(path.join(folder, file), 'utf8').matchAll(MODEL)]);
  const nameOf = new Map(
    models.map(([, model = '', body = '']) => [model, /@@map\("(\w+)"\)/.exec(body)?.[1] ?? model]),
  );
  return models.map(([, model = '', body = '']) => {
    const relations = [...body.matchAll(RELATION)].filter(([, , options = '']) => options.includes('fields:'));
    const targets = (isCascade: boolean) => [
      ...new Set(
        relations
          .filter(([, , options = '']) => options.includes('onDelete: Cascade') === isCascade)
          .map(([, target = '']) => nameOf.get(target)!),
      ),
    ];
    return { name: nameOf.get(model)!, partOf: targets(true), names: targets(false) };
  });
}

/** The group whose `tables.ts` owns a table. */
function readGroups(): Map<string, string> {
  const src = path.join(projectRoot, 'src');
  const files = readdirSync(src).flatMap((group) =>
    ['tables.ts', 'ground-tables.ts'].map((file) => ({ group, file: path.join(src, group, file) })),
  );
  return new Map(
    files
      .filter(({ file }) => existsSync(file))
      .flatMap(({ group, file }) => {
        const owned = /owns: \[([^\]]*)\]/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
        return [...owned.matchAll(/'(\w+)'/g)].map(([, table = '']) => [table, group] as const);
      }),
  );
}

/** The innermost of the tables that a table is a part of: it is in the others, too. */
function parentsOf(tables: readonly Table[]): Map<string, string | null> {
  const byName = new Map(tables.map((table) => [table.name, table]));
  const depthOf = (name: string, seen: readonly string[] = []): number =>
    Math.max(
      0,
      ...byName
        .get(name)!
        .partOf.filter((one) => one !== name && !seen.includes(one))
        .map((one) => 1 + depthOf(one, [...seen, name])),
    );
  return new Map(
    tables.map(({ name, partOf }) => {
      const [first = null] = partOf.filter((one) => one !== name).sort((a, b) => depthOf(b) - depthOf(a));
      return [name, first];
    }),
  );
}

/** A line for each table, below the one that it is a part of. */
function draw(tables: readonly Table[]): string[] {
  const [groups, parents] = [readGroups(), parentsOf(tables)];
  const below = (parent: string | null, indent: string): string[] =>
    tables
      .filter(({ name }) => parents.get(name) === parent)
      .flatMap(({ name, partOf, names }, at, all) => {
        const isLast = at === all.length - 1;
        const branch = parent === null ? '' : isLast ? '└─ ' : '├─ ';
        const others = [...partOf.filter((one) => one !== parent), ...names].filter((one) => one !== name);
        const group = groups.has(name) ? ` (${groups.get(name)})` : '';
        const line = `${indent}${branch}${name}${group}${others.length > 0 ? ` → ${others.join(', ')}` : ''}`;
        const inner = parent === null ? '' : isLast ? '   ' : '│  ';
        return [line, ...below(name, indent + inner)];
      });
  return below(null, '');
}

const page = `# The tables

Written by \`npm run generate\` from \`prisma/schema\`. An indented table belongs to the table above it: deleting a
parent row deletes its child rows. An arrow leads to other tables that it names. The group that owns a table is in
brackets; only that group writes it, unless its \`tables.ts\` lends it
([decision 33](../decisions/0033-ten-groups-over-one-ground.md)).

\`\`\`text
${draw(readTables()).join('\n')}
\`\`\`
`;
writeOrCheck(path.join(projectRoot, 'docs', 'contribute', 'data.md'), page);
