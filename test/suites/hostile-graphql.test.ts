import { GraphQLID, getNamedType } from 'graphql';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { fieldValues, withOneTextEmpty } from '../support/hostile.ts';
import { answered, pollution } from '../support/hostile-answers.ts';
import { graphqlRequest } from '../support/requests.ts';
import { argumentsOf, documentOf, rootFields, titleOf } from '../support/root-fields.ts';
import { thinned } from '../support/thinned.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
});
afterAll(() => app.close());
afterEach(() => expect(pollution()).toBeNull());

describe('over GraphQL: never an internal error, never a hang', () => {
  const asked = rootFields.filter(({ kind, name }) => kind !== 'subscription' && !/logout$/i.test(name));
  test.each(asked.map((root) => [titleOf(root), root] as const))('%s', async (title, root) => {
    const authorization = world.as('owner').authorization;
    const given = argumentsOf(root, world, { requiredOnly: false });
    const query = documentOf(root, given, 2);
    const faults: string[] = [];
    const ask = async (what: string, variables: string) => {
      const request = graphqlRequest(query, {}, authorization);
      const answer = await answered(app, {
        ...request,
        payload: `{"query":${JSON.stringify(query)},"variables":${variables}}`,
      });
      if (answer.statusCode >= 500 || answer.body.includes('INTERNAL_SERVER_ERROR'))
        faults.push(`${what}: ${answer.statusCode} ${answer.body.slice(0, 300)}`);
    };
    // the largest ones once per field of the root: what they cost does not depend on where they stand
    const small = fieldValues.filter(([, json]) => json.length < 100_000);
    let next = fieldValues;
    const values = (where: string) => {
      const now = thinned(next, `${title} ${where}`);
      next = small;
      return now;
    };
    for (const [name, value] of Object.entries(given)) {
      const others = Object.entries(given).filter(([other]) => other !== name);
      const withValue = (json: string) =>
        `{${[
          ...others.map(([key, kept]) => `${JSON.stringify(key)}:${JSON.stringify(kept)}`),
          `${JSON.stringify(name)}:${json}`,
        ].join()}}`;
      if (typeof value !== 'object' || value === null) {
        for (const [what, json] of values(name)) await ask(`${name}: ${what}`, withValue(json));
        continue;
      }
      for (const key of Object.keys(value)) {
        const { [key]: _left, ...rest } = value as Record<string, unknown>;
        const inner = JSON.stringify(rest).slice(1, -1);
        for (const [what, json] of values(`${name}.${key}`))
          await ask(
            `${name}.${key}: ${what}`,
            withValue(`{${inner}${inner ? ',' : ''}${JSON.stringify(key)}:${json}}`),
          );
      }
    }
    for (const [where, copy] of thinned([...withOneTextEmpty(given)], `${title} texts`))
      await ask(`${where} empty`, JSON.stringify(copy));
    expect(faults).toEqual([]);
  });

  const withIds = rootFields.filter(({ field }) => field.args.some(({ type }) => getNamedType(type) === GraphQLID));
  test.each(withIds.map((root) => [titleOf(root), root] as const))(
    '%s: an empty id is invalid, or as unknown as any other',
    async (_title, root) => {
      const given = argumentsOf(root, world, { requiredOnly: false });
      const codeWith = async (ids: Record<string, string>) => {
        const variables = { ...given, ...ids };
        const request = graphqlRequest(documentOf(root, variables, 1), variables, world.as('owner').authorization);
        const accept = root.kind === 'subscription' ? 'text/event-stream' : 'application/json';
        const { body } = await answered(app, { ...request, headers: { ...request.headers, accept } });
        return /"code":"([A-Z_]+)"/.exec(body)?.[1] ?? 'none';
      };
      for (const { name, type } of root.field.args) {
        if (getNamedType(type) !== GraphQLID) continue;
        const unknown = await codeWith({ [name]: 'nobody_01M7YDNKP9EQGSJ8EQS85QTN9P' });
        expect([unknown, 'VALIDATION_ERROR'], name).toContain(await codeWith({ [name]: '' }));
        expect(unknown, name).not.toBe('INTERNAL_SERVER_ERROR');
      }
    },
  );

  test('documents that are none', async () => {
    const queries = [
      '',
      ' ',
      '{',
      '{}',
      'query',
      '\0',
      '\ud800',
      '{ __proto__ }',
      '{ me { constructor } }',
      '{ me @skip { id } }',
      '{ me(id: "\\u0000") { id } }',
      `{ ${'me '.repeat(1_000)} }`,
      `${'{ me '.repeat(3_000)}`,
      '#'.repeat(1_000_000),
      'query A { me { id } } query B { me { id } }',
      'fragment F on User { ...F } { me { ...F } }',
      '{ ...F }',
      'mutation { nothing }',
      'subscription { nothing }',
      '{ me { id } } type X { a: Int }',
    ];
    for (const query of queries) {
      const answer = await answered(app, graphqlRequest(query, {}, world.as('owner').authorization));
      expect(answer.statusCode, query.slice(0, 60)).toBeLessThan(500);
      expect(answer.body, query.slice(0, 60)).toContain('"errors"');
      expect(answer.body).not.toMatch(/INTERNAL_SERVER_ERROR|node_modules|\.ts:\d|Did you mean/);
    }
  });
});
