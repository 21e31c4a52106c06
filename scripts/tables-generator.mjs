// A Prisma generator: writes `src/generated/tables.ts`, the tables as the write path uses them.
import { writeFile } from 'node:fs/promises';
import generatorHelper from '@prisma/generator-helper';

const DEFAULT_OUTPUT = '../../src/generated/tables.ts';

/** @typedef {import('@prisma/generator-helper').DMMF.Model} Model */
/** @typedef {import('@prisma/generator-helper').DMMF.Field} Field */

/** @type {Record<string, string>} */
const TYPES = {
  String: 'string',
  Int: 'number',
  Float: 'number',
  BigInt: 'bigint',
  Decimal: 'string',
  Boolean: 'boolean',
  DateTime: 'Date',
  Json: 'object',
  Bytes: 'Uint8Array',
};

/**
 * Columns that only PostgreSQL fills, such as a transaction's number, are not among Prisma's fields.
 * @param {Model} model
 */
const columnsOf = (model) => model.fields.filter((field) => field.kind === 'scalar');

/** @param {Field} field */
const columnName = (field) => field.dbName ?? field.name;

/** @param {Field} field */
function typeOf({ name, type, isList, isRequired, hasDefaultValue }) {
  const one = TYPES[type];
  if (!one) throw new Error(`The write path knows no columns of the type ${type}.`);
  const whole = isList ? `readonly ${one}[]` : one;
  return `${name}${!isRequired || hasDefaultValue ? '?' : ''}: ${whole}${isRequired ? '' : ' | null'}`;
}

/** @param {Model} model */
function printType(model) {
  const fields = columnsOf(model).map(typeOf).join('; ');
  return `  ${model.dbName ?? model.name}: { row: Prisma.${model.name}; given: { ${fields} } };`;
}

/** @param {Model} model */
function printTable(model) {
  const columns = columnsOf(model);
  const names = columns.map((field) => `${field.name}: '${columnName(field)}'`).join(', ');
  const json = columns.filter(({ type }) => type === 'Json').map(({ name }) => `'${name}'`);
  const required = columns.filter(({ isRequired }) => isRequired).map(({ name }) => `'${name}'`);
  const touched = columns.find((field) => field.isUpdatedAt);
  const lists = `json: [${json.join(', ')}], required: [${required.join(', ')}]`;
  return `  ${model.dbName ?? model.name}: { columns: { ${names} }, ${lists}, touched: ${
    touched ? `'${columnName(touched)}'` : 'null'
  } },`;
}

/** @param {readonly Model[]} models */
const print = (models) => `// Generated from prisma/schema by scripts/tables-generator.mjs.
import type * as Prisma from './prisma/client.ts';

/** Each table: its row as Prisma reads it, and what is given for a new one. */
export interface Tables {
${models.map(printType).join('\n')}
}

/**
 * Each table: its columns by property, the properties that hold JSON, those that are never null, and the column that
 * says when a row was last changed.
 */
export const tables = {
${models.map(printTable).join('\n')}
} as const;
`;

generatorHelper.generatorHandler({
  onManifest: () => ({ prettyName: 'Tables', defaultOutput: DEFAULT_OUTPUT }),
  onGenerate: ({ generator, dmmf }) =>
    writeFile(generator.output?.value ?? DEFAULT_OUTPUT, print(dmmf.datamodel.models)),
});
