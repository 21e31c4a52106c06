// Which tables the modules of a group name in their SQL, and whether the owners of these tables lend them.
import { parseSync } from '@swc/core';

/**
 * @typedef {import('../src/data/lent-tables.ts').GroupTables} GroupTables
 * @typedef {{ table: string, writes: boolean }} Use
 */

/** Tables of the ground. Their SQL is in functions and triggers, or in the folder that owns them. */
const GROUND = {
  data: ['activity', 'events', 'resource_counts', 'place_counts', 'idempotency_keys'],
  platform: ['root_keys'],
};

/** Methods of a change that name a table first, and functions that name it second. */
const READS = new Set(['lock', 'lockAll', 'lockUnread', 'demand', 'findRow', 'findRows']);
const WRITES = new Set(['insert', 'create', 'update', 'change', 'remove', 'bulkInsertOf']);

/** A table in SQL: behind a word that a table follows, or behind a comma and with an alias. */
const NAMED = new RegExp(
  [
    /\b(?:from|join|into|update|using)\s+(?:only\s+)?([a-z_]+)\b/,
    /,\s*([a-z_]+)\s+(?!(?:and|or|of|in|to|is|by|as)\b)[a-z]{1,3}\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
);
const CHANGES = /\b(?:insert\s+into|delete\s+from|update)\s+(?:only\s+)?$/;

/**
 * The tables that a text of SQL names.
 * @param {string} text
 * @param {ReadonlySet<string>} tables
 * @returns {Use[]}
 */
export function tablesIn(text, tables) {
  return [...text.matchAll(NAMED)].flatMap((match) => {
    const table = match[1] ?? match[2] ?? '';
    if (!tables.has(table)) return [];
    return [{ table, writes: CHANGES.test(text.slice(0, match.index + match[0].indexOf(table))) }];
  });
}

/**
 * The tables that a module names: in SQL, as the argument of what reads and writes rows, or through Prisma Client.
 * @param {string} code JavaScript
 * @param {ReadonlySet<string>} tables
 * @param {Readonly<Record<string, string>>} models the tables of the properties of Prisma Client
 * @returns {Use[]}
 */
export function tablesOf(code, tables, models) {
  /** @type {Use[]} */
  const uses = [];
  /** @param {unknown} value */
  const visit = (value) => {
    if (value === null || typeof value !== 'object') return;
    if ('type' in value) uses.push(...usesOf(/** @type {Relevant} */ (value), tables, models));
    for (const child of Object.values(value)) visit(child);
  };
  visit(parseSync(code, { syntax: 'ecmascript', target: 'es2022' }).body);
  return uses;
}

/**
 * The nodes of a syntax tree that can name a table.
 * @typedef {import('@swc/core').StringLiteral | import('@swc/core').TemplateLiteral |
 *   import('@swc/core').CallExpression | import('@swc/core').KeyValueProperty |
 *   import('@swc/core').MemberExpression} Relevant
 */

/**
 * @param {Relevant} node
 * @param {ReadonlySet<string>} tables
 * @param {Readonly<Record<string, string>>} models
 * @returns {Use[]}
 */
function usesOf(node, tables, models) {
  const named = (/** @type {unknown} */ table, writes = false) =>
    typeof table === 'string' && tables.has(table) ? [{ table, writes }] : [];
  if (node.type === 'StringLiteral') return tablesIn(node.value, tables);
  // what stands in a gap is no table: those are named by the text
  if (node.type === 'TemplateLiteral')
    return tablesIn(node.quasis.map(({ cooked }) => cooked ?? '').join(' $ '), tables);
  if (node.type === 'KeyValueProperty')
    return /^(?:from|table)$/.test(nameOf(node.key)) ? named(nameOf(node.value)) : [];
  if (node.type === 'MemberExpression')
    return /^(?:prisma|tx)$/.test(nameOf(node.object)) ? named(models[nameOf(node.property)]) : [];
  if (node.type !== 'CallExpression') return [];
  const called = nameOf(node.callee);
  if (!READS.has(called) && !WRITES.has(called)) return [];
  const [first, second] = node.arguments.map(({ expression }) => nameOf(expression));
  return named(tables.has(first ?? '') ? first : second, WRITES.has(called));
}

/**
 * The name that a node is: of a variable, of the last property, or its text.
 * @param {import('@swc/core').Node} node
 * @returns {string}
 */
function nameOf(node) {
  if ('property' in node) return nameOf(/** @type {import('@swc/core').MemberExpression} */ (node).property);
  return 'value' in node && typeof node.value === 'string' ? node.value : '';
}

/**
 * @param {{ path: string, code: string }[]} modules paths like `src/vault/secrets/vault.js`
 * @param {Readonly<Record<string, GroupTables>>} groups what each group owns and lends
 * @param {Readonly<Record<string, string>>} models
 * @returns {string[]} uses of tables that are not lent, and loans that nobody needs
 */
export function forbiddenReach(modules, groups, models) {
  const owners = new Map([
    ...Object.entries(GROUND).flatMap(([unit, own]) => own.map((table) => /** @type {const} */ ([table, unit]))),
    ...Object.entries(groups).flatMap(([group, { owns }]) =>
      owns.map((table) => /** @type {const} */ ([table, group])),
    ),
  ]);
  const all = new Set(Object.values(models));
  const problems = [...all].filter((table) => !owners.has(table)).map((table) => `sql-reach: nobody owns '${table}'`);
  const unused = new Set(
    Object.values(groups).flatMap(({ lends }) =>
      Object.entries(lends).flatMap(([table, to]) => Object.keys(to ?? {}).map((reader) => `${table} to ${reader}`)),
    ),
  );
  for (const { path, code } of modules) {
    const unit = path.split('/')[1] ?? '';
    for (const { table, writes } of tablesOf(code, all, models)) {
      const owner = owners.get(table) ?? '';
      if (owner === unit || owner in GROUND) continue;
      const reader = writes ? `${unit} (writes)` : unit;
      const lent = groups[owner]?.lends[/** @type {keyof GroupTables['lends']} */ (table)];
      if (lent && reader in lent) unused.delete(`${table} to ${reader}`);
      else
        problems.push(
          `sql-reach: ${path} ${writes ? 'writes' : 'reads'} '${table}' of ${owner}, which does not lend it`,
        );
    }
  }
  return [...new Set(problems), ...[...unused].map((loan) => `sql-reach: nobody needs the loan of ${loan}`)];
}
