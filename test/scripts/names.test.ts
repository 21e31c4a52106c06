import { describe, expect, it } from 'vitest';
import { problemsOfNames } from '../../scripts/names.mjs';

const problems = (texts: Record<string, string>, allowed: Record<string, string> = {}) =>
  problemsOfNames(
    Object.entries(texts).map(([path, text]) => ({ path, text })),
    allowed,
  );

describe('names', () => {
  it('refuses an exported type that another module declares, exported or not', () => {
    const twice = { 'a.ts': 'export interface Target {\n}\n', 'b.ts': 'type Target = string;\n' };
    expect(problems(twice)).toEqual(['Target is declared in a.ts and b.ts']);
    expect(problems(twice, { Target: 'the same in both' })).toEqual([]);
  });

  it('lets two modules have a type of their own, and imports a name', () => {
    const own = 'type Path = string;\n';
    expect(problems({ 'a.ts': own, 'b.ts': own })).toEqual([]);
    expect(
      problems({ 'a.ts': 'export class Plan<T> {\n}\n', 'b.ts': "import { type Plan } from './a.ts';\n" }),
    ).toEqual([]);
  });

  it('refuses an exception that nothing needs', () => {
    expect(problems({ 'a.ts': 'export type One = 1;\n' }, { One: 'why' })).toEqual(['One needs no exception']);
  });

  it.each([
    ['interface Deps {', 'a.ts: the type Deps needs a noun'],
    ['export const unkept = 1;', 'a.ts: unkept, say noCache'],
    ['function get(actor: Caller, id: string) {', 'a.ts: actor, say caller: an actor is only what events show'],
  ])('refuses %s', (text, problem) => {
    expect(problems({ 'a.ts': `${text}\n` })).toEqual([problem]);
  });

  it('leaves comments and published members alone', () => {
    expect(problems({ 'a.ts': '// const unkept = 1;\nexport interface Sent {\n  actor: string;\n}\n' })).toEqual([]);
  });
});
