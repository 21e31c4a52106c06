import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { operationsDir } from '../../src/paths.ts';

const FILE = path.join(operationsDir, 'answers.json');

/** `npm run examples:record` writes what is answered; without it, answers are compared with what was written. */
export const isRecording = process.env.RECORD_EXAMPLES === '1';

const recorded: Record<string, unknown> = existsSync(FILE)
  ? (JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, unknown>)
  : {};

/** The answer of an operation as the OpenAPI document shows it; `undefined` when none was recorded. */
export const recordedAnswer = (name: string): unknown => recorded[name];

/** Keeps a real answer as an example. @param marker what the world has in its names */
export function keepAnswer(name: string, answer: unknown, marker: string): void {
  recorded[name] = exampleOf(answer, marker);
}

/** Writes those that were kept, and forgets those of operations that are gone. */
export function writeAnswers(names: readonly string[]): void {
  const known = names.filter((name) => name in recorded).sort();
  const all = Object.fromEntries(known.map((name) => [name, recorded[name]]));
  writeFileSync(FILE, `${JSON.stringify(all, null, 1)}\n`);
}

const ITEMS = 2;
const ID = /\b([a-z]{2,5})_[0-9a-hjkmnp-tv-z]{26}\b/gi;
const FIRST_ID = '01KB5T3V9C0000000000000000';
const TIME = /\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(\.\d+)?/g;
/** Tokens, cursors, digests and codes: shown as far as their beginning. */
const OPAQUE = /[A-Za-z0-9_+/=.-]{20,}/g;
const SHOWN = 12;
const isOpaque = (text: string): boolean =>
  !text.includes(FIRST_ID.slice(0, 10)) &&
  (text.length >= 64 || [/[a-z]/, /[A-Z]/, /\d/].every((kind) => kind.test(text)));

/**
 * A real answer without what differs from run to run: the same id has the same place holder in it, every time is one
 * time, what nobody may copy ends early, and long lists are cut.
 */
function exampleOf(answer: unknown, marker: string): unknown {
  const ids = new Map<string, string>();
  const textOf = (text: string): string =>
    text
      .replaceAll(ID, (id, prefix: string) => {
        const known = ids.get(id) ?? `${prefix}_${numbered(ids.size + 1)}`;
        ids.set(id, known);
        return known;
      })
      .replaceAll(
        TIME,
        (_time, between: string, fraction = '') => `2026-12-01${between}09:30:00${'.000000'.slice(0, fraction.length)}`,
      )
      .replaceAll(new RegExp(`${marker}[ -]?`, 'g'), '')
      .replaceAll(OPAQUE, (found) => (isOpaque(found) ? `${found.slice(0, SHOWN)}…` : found))
      .replace(/^\d+$/, 'example-$&');
  const of = (value: unknown): unknown => {
    if (typeof value === 'string') return textOf(value);
    if (Array.isArray(value)) return value.slice(0, ITEMS).map(of);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [textOf(key), of(inner)]));
  };
  return of(answer);
}

const numbered = (n: number): string => FIRST_ID.slice(0, -String(n).length) + String(n);
