// Which tables the modules of a group name in their SQL, and whether the owners of these tables lend them.
import { parseSync } from '@swc/core';

/**
 * @typedef {import('../src/data/lent-tables.ts').GroupTables} GroupTables
 * @typedef {{ table: string, writes: boolean }} Use
 */

/**
 * Modules that may name the tables of every group, each with its reason.
 * @type {Readonly<Record<string, string>>}
 */
const FOR_ALL = {
  'src/data/named-resources.': 'a record names the resource of any group only while it exists',
  'src/data/activity.': 'the same for the places of a record',
  'src/data/failed-sign-ins.': 'the same for who may know of one',
  'src/data/locks.': 'the order in which the tables of all groups are locked',
};

/** Methods of a change that name a table first, and functions that name it first or second. */
const READS = new Set(['lock', 'lockAll', 'lockUnread', 'demand', 'findRow', 'findRows', 'selectOf', 'tableOf']);
const WRITES = new Set(['insert', 'create', 'update', 'change', 'remove', 'bulkInsertOf', 'bulkInsert']);
const PRISMA_WRITES = /^(?:create|update|upsert|delete)(?:Many|ManyAndReturn)?$/;

/** A table in SQL: behind a word that a table follows, behind a comma with an alias, or at the start of a join. */
const NAMED = new RegExp(
  [
    /\b(?:from|join|into|update|using|lock\s+table|truncate(?:\s+table)?)\s+(?:only\s+)?\(?\s*(?:public\.)?([a-z_]+)\b/,
    /,\s*([a-z_]+)\s+(?:as\s+)?(?!(?:and|or|of|in|to|is|by|as|who)\b)[a-z]{1,3}\d?\b/,
    /^\s*([a-z_]+)\s+(?:as\s+)?[a-z]{1,3}\d?\s+(?=(?:left\s+|cross\s+|inner\s+)?join\b)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
);
const CHANGES = /\b(?:insert\s+into|delete\s+from|update|truncate(?:\s+table)?)\s+(?:only\s+)?(?:public\.)?$/;
/** A text behind which the name of a table follows; `from` is also a word of sentences. */
const OPEN = /(?:(?:^\s*|\b(?:select|delete)\b[\s\S]*\b)from|\b(?:join|into|update|using))\s+(?:only\s+)?$/i;

/**
 * The tables that a text of SQL names.
 * @param {string} text
 * @param {ReadonlySet<string>} tables
 * @returns {Use[]}
 */
export function tablesIn(text, tables) {
  const plain = text.toLowerCase().replaceAll('"', '');
  return [...plain.matchAll(NAMED)].flatMap((match) => {
    const table = match[1] ?? match[2] ?? match[3] ?? '';
    if (!tables.has(table)) return [];
    return [{ table, writes: CHANGES.test(plain.slice(0, match.index + match[0].indexOf(table))) }];
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
  /** Texts that are nothing but the name of a table: they may fill a gap in SQL. @type {Use[]} */
  const bare = [];
  let hasGap = false;
  /** @param {unknown} value */
  const visit = (value) => {
    if (value === null || typeof value !== 'object') return;
    if ('type' in value) {
      const node = /** @type {Relevant} */ (value);
      uses.push(...usesOf(node, tables, models));
      if (node.type === 'StringLiteral' && tables.has(node.value)) bare.push({ table: node.value, writes: false });
      if (node.type === 'TemplateLiteral')
        hasGap ||= node.quasis.some((_, at, all) => at > 0 && OPEN.test(textOf(all.slice(0, at))));
    }
    for (const child of Object.values(value)) visit(child);
  };
  visit(parseSync(code, { syntax: 'ecmascript', target: 'es2022' }).body);
  return hasGap ? [...uses, ...bare] : uses;
}

/**
 * The text of a template, or of the beginning of one.
 * @param {readonly import('@swc/core').TemplateElement[]} quasis
 * @returns {string}
 */
const textOf = (quasis) => quasis.map(({ cooked }) => cooked ?? '').join(' $ ');

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
  if (node.type === 'TemplateLiteral') return tablesIn(textOf(node.quasis), tables);
  // `from: 'apps'`; a join is read as a text of its own
  if (node.type === 'KeyValueProperty')
    return /^(?:from|table)$/.test(nameOf(node.key)) ? named(nameOf(node.value)) : [];
  if (node.type === 'MemberExpression')
    return /^(?:prisma|tx)$/.test(nameOf(node.object)) ? named(models[nameOf(node.property)]) : [];
  if (node.type !== 'CallExpression') return [];
  const called = nameOf(node.callee);
  if (PRISMA_WRITES.test(called) && 'object' in node.callee) {
    const model = /** @type {import('@swc/core').MemberExpression} */ (node.callee.object);
    if ('object' in model && /^(?:prisma|tx)$/.test(nameOf(model.object)))
      return named(models[nameOf(model.property)], true);
  }
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
  const owned = Object.entries(groups).flatMap(([group, { owns }]) =>
    owns.map((table) => /** @type {const} */ ([table, group])),
  );
  /** @type {ReadonlyMap<string, string>} */
  const owners = new Map(owned);
  const all = new Set(Object.values(models));
  const problems = [
    ...[...all].filter((table) => !owners.has(table)).map((table) => `sql-reach: nobody owns '${table}'`),
    ...owned.filter(([table, group]) => owners.get(table) !== group).map(([table]) => `sql-reach: two own '${table}'`),
  ];
  const unused = new Set(
    Object.values(groups).flatMap(({ lends }) =>
      Object.entries(lends).flatMap(([table, to]) => Object.keys(to ?? {}).map((reader) => `${table} to ${reader}`)),
    ),
  );
  for (const { path, code } of modules) {
    const unit = path.split('/')[1] ?? '';
    if (Object.keys(FOR_ALL).some((start) => path.startsWith(start))) continue;
    for (const { table, writes } of tablesOf(code, all, models)) {
      const owner = owners.get(table) ?? '';
      if (owner === unit) continue;
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
