import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Recording } from './record.ts';
import { TEST_ONLY } from './seed.ts';

/** One folder for each schema that landed, named as its newest migration: `rows.sql` and `answers.json`. */
export const DUMPS = path.join(import.meta.dirname, 'dumps');

/** Variables of a service that a dump was made by, and that goes on with its rows. */
export const SERVICE = { ...TEST_ONLY, RATE_LIMIT_RPS: '0', LOG_LEVEL: 'error' };

export interface Dump {
  /** Its newest migration. */
  name: string;
  rows: string;
  recording: string;
  /** When both were written. */
  writtenAt: Date;
  migrations: string[];
}

/** All dumps, the oldest first. */
export function readDumps(): Dump[] {
  return readdirSync(DUMPS)
    .sort()
    .map((name) => {
      const recording = readFileSync(path.join(DUMPS, name, 'answers.json'), 'utf8');
      const { writtenAt, migrations } = JSON.parse(recording) as Recording;
      const rows = readFileSync(path.join(DUMPS, name, 'rows.sql'), 'utf8');
      return { name, rows, recording, writtenAt: new Date(writtenAt), migrations };
    });
}
