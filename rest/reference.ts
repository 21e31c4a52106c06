import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { derivedExample, derivedGroup } from './derived-reference.ts';
import { CompileError } from './documents.ts';
import type { CompiledOperation } from './operation.ts';

/** The group of one file's operations in the API reference. */
export interface ReferenceGroup {
  /** Name of the file, without folder and extension. */
  file: string;
  name: string;
  description?: string;
}

/**
 * What the documents do not contain: the groups of the reference in their order, and an example for each body.
 */
export interface ApiReference {
  groups: readonly ReferenceGroup[];
  /** REST body by operation name. `{name}` is a placeholder for an existing value, such as an id. */
  examples: Readonly<Record<string, unknown>>;
  /** Answers of success by operation name: real ones, which the tests have recorded. */
  answers?: Readonly<Record<string, unknown>>;
}

export const fileOf = ({ file }: Pick<CompiledOperation, 'file'>): string =>
  (file.split('/').at(-1) ?? file).replace(/\.graphql$/, '');

/**
 * Reads `groups.json`, `examples.json` and `answers.json` beside the documents, if they exist. Files without a group
 * come last, and bodies without an example have one where it follows from their fields: see `derived-reference.ts`.
 * @throws CompileError when one of them names a file or an operation that does not exist
 */
export function readReference(dir: string, operations: readonly CompiledOperation[]): ApiReference {
  const named = readJson<ReferenceGroup[]>(join(dir, 'groups.json')) ?? [];
  const examples = readJson<Record<string, unknown>>(join(dir, 'examples.json')) ?? {};
  const answers = readJson<Record<string, unknown>>(join(dir, 'answers.json')) ?? {};
  const files = new Set(operations.map(fileOf));
  const withBody = new Set(operations.flatMap(({ name, body }) => (body ? [name] : [])));
  const problems = [
    ...named.flatMap(({ file }) => (files.has(file) ? [] : [`groups.json: there is no file '${file}.graphql'.`])),
    ...Object.keys(examples).flatMap((name) =>
      withBody.has(name) ? [] : [`examples.json: there is no operation '${name}' with a body.`],
    ),
    ...Object.keys(answers).flatMap((name) =>
      operations.some((operation) => operation.name === name)
        ? []
        : [`answers.json: there is no operation '${name}': npm run examples:record.`],
    ),
  ];
  if (problems.length > 0) throw new CompileError(problems);
  const known = new Set(named.map(({ file }) => file));
  const others = [...files]
    .filter((file) => !known.has(file))
    .map((file) =>
      derivedGroup(
        file,
        operations.filter((operation) => fileOf(operation) === file),
      ),
    );
  const derived = operations.flatMap(({ name, body }) => {
    const isPlain = body?.fileField === null && !(name in examples);
    const example = isPlain ? derivedExample(body.type) : null;
    return example ? [[name, example] as const] : [];
  });
  return { groups: [...named, ...others], examples: { ...Object.fromEntries(derived), ...examples }, answers };
}

const readJson = <Content>(file: string): Content | null =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Content) : null;

/**
 * In reading order: by group, operations of the spec before additions, then by position in their file.
 */
export function inReadingOrder(
  operations: readonly CompiledOperation[],
  { groups }: ApiReference,
): CompiledOperation[] {
  const rank = new Map(groups.map(({ file }, index) => [file, index]));
  const rankOf = (operation: CompiledOperation) =>
    (rank.get(fileOf(operation)) ?? groups.length) + (operation.isAddition ? 0.5 : 0);
  return [...operations].sort((a, b) => rankOf(a) - rankOf(b));
}
