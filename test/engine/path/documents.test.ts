import { GraphQLError } from 'graphql';
import { expect, test } from 'vitest';
import { Documents } from '../../../src/engine/path/documents.ts';
import { schema } from '../../../src/wiring/schema.ts';

const DOCUMENTS = 250;
const MIB = 1024 * 1024;
const limits = { graphqlMaxDepth: 10, graphqlMaxAliases: 30, graphqlMaxTokens: 1_000, graphqlIntrospection: true };
const filler = 'x'.repeat(40 * 1024);

function asked(textOf: (i: number) => string): Documents {
  const documents = new Documents(schema, limits);
  for (let i = 0; i < DOCUMENTS; i++) documents.isGood(textOf(i));
  return documents;
}

// what it costs in bytes of the process is for `BENCH_ONLY=hostile npm run bench`
test('of 250 distinct documents of 80 KB those are cached that fit into 16 MiB, the last ones', () => {
  const textOf = (i: number) => `{ authConfig { __typename } } # ${i} ${filler}`;
  const documents = asked(textOf);
  expect(documents.cached.bytes).toBeLessThanOrEqual(16 * MIB);
  expect(documents.cached.documents).toBeGreaterThan(150);
  expect(documents.cached.documents).toBeLessThan(210);
  const last = documents.parse(textOf(DOCUMENTS - 1));
  expect(documents.parse(textOf(DOCUMENTS - 1))).toBe(last);
});

test.each([
  ['are none', (i: number) => `{ authConfig { __typename } # ${i} ${filler}`],
  ['do not fit the schema', (i: number) => `{ a${i} { b } } # ${filler}`],
])('nothing of documents that %s is cached', (_what, textOf) => {
  const documents = asked(textOf);
  expect(documents.cached).toEqual({ documents: 0, bytes: 0 });
  const again = (i: number) => {
    try {
      return documents.parse(textOf(i));
    } catch (error) {
      return error instanceof GraphQLError ? error.message : error;
    }
  };
  // an earlier one is parsed anew each time
  const first = again(0);
  if (typeof first !== 'string') expect(again(0)).not.toBe(first);
});
