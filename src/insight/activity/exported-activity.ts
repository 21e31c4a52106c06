import type { Activity } from '../../generated/prisma/client.ts';
import { isoText } from '../../kernel/iso-text.ts';
import { snakeCase } from '../../kernel/snake-case.ts';

/** How an export is written. */
export type ExportFormat = 'ndjson' | 'csv';

/** What a record shows, in the order of the list's own records. */
const FIELDS = [
  'id',
  'timestamp',
  'traceId',
  'userId',
  'workspaceId',
  'appId',
  'principalType',
  'principalId',
  'tokenId',
  'tokenType',
  'method',
  'path',
  'resourceType',
  'resourceId',
  'action',
  'statusCode',
  'success',
  'errorCode',
  'durationMs',
  'executionId',
  'augmentationId',
  'stagesCompleted',
  'totalStages',
  'tokenUsage',
  'metadata',
] as const satisfies readonly (keyof Activity)[];

const NAMES = FIELDS.map((field) => snakeCase(field));

interface Writer {
  mediaType: string;
  /** What comes before the records. */
  head: string;
  write: (record: Activity) => string;
}

/** A program that opens a table would run a text that begins like this. */
const FORMULA = /^[=+\-@\t\r\n]/;
/** Spreadsheets of some languages take a semicolon for the comma, and a tab is one for all. */
const FORMULA_WITHIN = /([;\t])(?=\s*[=+\-@])/g;

/** A value in a table. Texts that strangers wrote must not be formulas: an apostrophe before them says so. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = value instanceof Date ? isoText(value) : typeof value === 'string' ? value : JSON.stringify(value);
  const guarded = `${FORMULA.test(text) ? "'" : ''}${text.replaceAll(FORMULA_WITHIN, "$1'")}`;
  return /[",;\t\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

const shown = (record: Activity, field: (typeof FIELDS)[number]): unknown => {
  const value = record[field];
  return value instanceof Date ? isoText(value) : value;
};

export const writers: Readonly<Record<ExportFormat, Writer>> = {
  ndjson: {
    mediaType: 'application/x-ndjson; charset=utf-8',
    head: '',
    write: (record) =>
      `${JSON.stringify(Object.fromEntries(FIELDS.map((field, at) => [NAMES[at]!, shown(record, field)])))}\n`,
  },
  csv: {
    mediaType: 'text/csv; charset=utf-8; header=present',
    head: `${NAMES.join(',')}\r\n`,
    write: (record) => `${FIELDS.map((field) => cell(record[field])).join(',')}\r\n`,
  },
};
