// own process: it listens for rejections that nothing handles, and graphql-js leaves some
import { setImmediate } from 'node:timers/promises';
import { execute, type GraphQLSchema, parse } from 'graphql';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { operationOf } from '../../rest/documents.ts';
import { Plan } from '../../src/engine/execution/plan.ts';
import { Clock, randomQuery, randomSchema } from '../support/random-queries.ts';
import { isWhole } from '../support/thinned.ts';

const SCHEMAS = isWhole() ? 300 : 40;
const QUERIES = 50;
const seed = inject('seed') ?? 0;

const unhandled: unknown[] = [];
const listen = (reason: unknown) => unhandled.push(reason);
const others = process.listeners('unhandledRejection');
beforeAll(() => {
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', listen);
});
afterAll(() => {
  process.off('unhandledRejection', listen);
  for (const other of others) process.on('unhandledRejection', other);
});

/** The answer, once everything has settled that was begun for it. */
async function answerOf(clock: Clock, run: (clock: Clock) => unknown): Promise<string> {
  const answer = JSON.stringify(await run(clock), null, 1);
  // Node tells of rejections after the microtasks of a turn
  do await setImmediate();
  while (clock.isWaiting);
  return answer;
}

async function compare(schema: GraphQLSchema, query: string, run: string): Promise<number> {
  const document = parse(query);
  const wanted = await answerOf(new Clock(run), (contextValue) => execute({ schema, document, contextValue }));
  const plan = new Plan(schema, document, operationOf(document));
  unhandled.length = 0;
  for (const _time of [1, 2])
    expect(await answerOf(new Clock(run), (clock) => plan.run(clock, {})), `${run} ${query}`).toBe(wanted);
  expect(unhandled, `${run} ${query}`).toEqual([]);
  return (JSON.parse(wanted) as { errors?: object[] }).errors?.length ?? 0;
}

test(`a plan has the data and errors of graphql-js in their order, whatever fails when (seed ${seed})`, async () => {
  const counts = { none: 0, one: 0, more: 0 };
  for (let n = 0; n < SCHEMAS; n++) {
    const schema = randomSchema(`${seed}.${n}`);
    for (let q = 0; q < QUERIES; q++) {
      const run = `${seed}.${n}.${q}`;
      const query = randomQuery(schema, run);
      const errors = await compare(schema, query, run);
      counts[errors === 0 ? 'none' : errors === 1 ? 'one' : 'more']++;
    }
  }
  // most answers have errors, and many have several
  expect(Math.min(...Object.values(counts)), JSON.stringify(counts)).toBeGreaterThan((SCHEMAS * QUERIES) / 10);
});
