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
  const add = (/** @type {unknown} */ table, /** @type {boolean} */ writes) => {
    if (typeof table === 'string' && tables.has(table)) uses.push({ table, writes });
  };
  const visit = (/** @type {any} */ node) => {
    if (!node || typeof node !== 'object') return;
    if (Array.isArray(node)) return void node.forEach(visit);
    if (node.type === 'StringLiteral') uses.push(...tablesIn(node.value, tables));
    if (node.type === 'TemplateLiteral')
      // what stands in a gap is no table: those are named by the text
      uses.push(...tablesIn(node.quasis.map((/** @type {any} */ quasi) => quasi.cooked ?? '').join(' $ '), tables));
    if (node.type === 'CallExpression') {
      const name = node.callee.property?.value ?? node.callee.value;
      const given = node.arguments.map((/** @type {any} */ { expression }) => expression.value);
      if (READS.has(name) || WRITES.has(name)) add(tables.has(given[0]) ? given[0] : given[1], WRITES.has(name));
    }
    if (node.type === 'KeyValueProperty' && ['from', 'table'].includes(node.key.value)) add(node.value.value, false);
    if (
      node.type === 'MemberExpression' &&
      /^(?:prisma|#prisma|tx)$/.test(node.object.property?.value ?? node.object.value ?? '')
    )
      add(models[node.property.value], false);
    for (const value of Object.values(node)) if (typeof value === 'object') visit(value);
  };
  visit(parseSync(code, { syntax: 'ecmascript', target: 'es2022' }).body);
  return uses;
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
