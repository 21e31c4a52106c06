import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { GraphQLError, parse, Source } from 'graphql';
import { afterAll, expect, it } from 'vitest';
import { CompileError, operationOf, problemAt, problemOf, readDocuments } from '../../rest/documents.ts';
import { folderOf, removeFolders } from './toy.ts';

afterAll(removeFolders);

/** What is read, with places that do not depend on the folder. */
function read(documents: string | Record<string, string>) {
  const dir = folderOf(documents);
  const { operations, fragments, problems, digest } = readDocuments(dir);
  return {
    operations: operations.map(({ name, file, line, comment }) => ({ name, file, line, comment })),
    fragments: [...fragments.keys()],
    problems: problems.map((problem) => problem.replaceAll(`${dir}${path.sep}`, '')),
    digest,
  };
}

it('operations and fragments are found in all files, in the order of their paths', () => {
  const found = read({
    'b.graphql': 'query B { b }\n\nmutation C { c }',
    'a/z.graphql': 'fragment F on Query { f }\nquery A { a ...F }',
    'notes.txt': 'query Not { read }',
    'a.graphql.bak': 'query Not { read }',
  });
  expect(found).toMatchObject({
    operations: [
      { name: 'A', file: 'a/z.graphql', line: 2 },
      { name: 'B', file: 'b.graphql', line: 1 },
      { name: 'C', file: 'b.graphql', line: 3 },
    ],
    fragments: ['F'],
    problems: [],
  });
});

it('the comment of an operation is what stands directly above it', () => {
  const commentOf = (above: string) => read(`${above}query A { a }`).operations[0]?.comment;
  expect(commentOf('')).toBe('');
  for (const line of ['# One line.\n', '  # One line.\n', '# One line.\r\n']) expect(commentOf(line)).toBe('One line.');
  expect(commentOf('# Not meant.\n\n# First.\n  ## Second.\n#Third.\n')).toBe('First.\nSecond.\nThird.');
  expect(commentOf('# Not meant.\n\n')).toBe('');
  expect(commentOf('#\n# Text.\n#\n#   indented  \n#\n')).toBe('Text.\n\n  indented');
  expect(commentOf('query Other { b } # not above\n')).toBe('');
  expect(read('query B { b }\n# Of A # itself.\nquery A { a }').operations[1]?.comment).toBe('Of A # itself.');
});

it('a mistake has its file, line and column, and what is right is read all the same', () => {
  expect(
    read({
      'a.graphql': 'query A { a ',
      'b.graphql': '\n  query { b }\nquery B { b }',
      'c.graphql': 'query B { c }\nfragment F on Query { f }\nfragment F on Query { g }\ntype T { t: Int }',
      'd.graphql': 'fragment F on Query { h } query D { d }',
    }),
  ).toMatchObject({
    operations: [{ file: 'b.graphql' }, { file: 'c.graphql' }, { file: 'd.graphql' }],
    fragments: ['F'],
    problems: [
      'a.graphql:1:13 Syntax Error: Expected Name, found <EOF>.',
      'b.graphql:2:3 An operation needs a name.',
      "c.graphql:1:1 Operation 'B' is already defined at b.graphql:3:1.",
      "c.graphql:3:1 Fragment 'F' is already defined at c.graphql:2:1.",
      'c.graphql:4:1 Only operations and fragments may stand here.',
      "d.graphql:1:1 Fragment 'F' is already defined at c.graphql:2:1.",
    ],
  });
});

it('a folder without documents is a mistake', () => {
  const dir = folderOf({ 'notes.txt': '' });
  expect(readDocuments(dir)).toMatchObject({ operations: [], problems: [`${dir} holds no *.graphql file.`] });
});

it('a folder that cannot be read is not called a mistake in a document', () => {
  const dir = folderOf('query A { a }');
  rmSync(path.join(dir, 'shop.graphql'));
  writeFileSync(path.join(dir, 'file'), '');
  expect(() => readDocuments(path.join(dir, 'nowhere'))).toThrow(expect.objectContaining({ code: 'ENOENT' }));
});

it('the digest is that of all names and texts, not of the folder', () => {
  const digestOf = (documents: Record<string, string>) => read(documents).digest;
  const one = digestOf({ 'a.graphql': 'query A { a }', 'b.graphql': 'query B { b }' });
  expect(one).toMatch(/^[0-9a-f]{64}$/);
  expect(digestOf({ 'b.graphql': 'query B { b }', 'a.graphql': 'query A { a }', 'c.txt': 'x' })).toBe(one);
  const others: Record<string, string>[] = [
    { 'a.graphql': 'query A { a }', 'c.graphql': 'query B { b }' },
    { 'a.graphql': 'query A { a }', 'b.graphql': 'query B { c }' },
    { 'a.graphql': 'query A { a }' },
    { 'a.graphql': 'query A { a }b.graphqlquery B { b }' },
  ];
  expect(new Set([one, ...others.map(digestOf)]).size).toBe(5);
});

it('a place is told of what has one', () => {
  const { definitions } = parse(new Source('\n  query A { a }', 'x.graphql'));
  expect(problemAt(definitions[0], 'is wrong')).toBe('x.graphql:2:3 is wrong');
  expect(problemAt(undefined, 'is wrong')).toBe('is wrong');
  expect(problemAt(parse('{ a }', { noLocation: true }), 'is wrong')).toBe('is wrong');
  expect(problemOf(new GraphQLError('is wrong', { nodes: definitions }))).toBe('x.graphql:2:3 is wrong');
  expect(problemOf(new GraphQLError('is wrong'))).toBe('is wrong');
});

it('all mistakes are one error, each of them once', () => {
  const error = new CompileError(['one', 'two', 'one']);
  expect([error.name, error.problems, error.message.split('\n').slice(1)]).toEqual([
    'CompileError',
    ['one', 'two'],
    ['one', 'two'],
  ]);
});

it('the operation of a document is its first one', () => {
  const nameOf = (text: string) => operationOf(parse(text)).name?.value;
  expect(nameOf('fragment F on Query { f } query A { a } query B { b }')).toBe('A');
  expect(() => nameOf('fragment F on Query { f }')).toThrow('The document has no operation.');
});
