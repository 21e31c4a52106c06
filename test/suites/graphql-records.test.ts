import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ActivityLabel } from '../../src/graphql/plugins/activity-label.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { PASSWORD, register } from '../support/person.ts';
import { graphqlRequest } from '../support/requests.ts';
import { argumentsOf, type RootField, rootFields, selectionOf, titleOf } from '../support/root-fields.ts';
import { openEvents } from '../support/sockets.ts';
import { waitFor } from '../support/wait.ts';
import { createWorld, type World } from '../support/world.ts';

let app: TestApp;
let world: World;
let url: string;
/** Belongs to no organization of the world, whatever the operations do. */
let outsider: string;
let number = 0;
beforeAll(async () => {
  app = await startTestApp();
  world = await createWorld(app);
  outsider = `Bearer ${(await register(app, { username: 'outsider' })).accessToken}`;
  url = await app.listen();
});
afterAll(() => app.close());

const labelOf = ({ field }: RootField) => field.extensions.activity as ActivityLabel | null;
const recorded = rootFields.filter((root) => labelOf(root) !== null);
/** What ends the session that asks, or changes its credentials. */
const ENDS_SESSION =
  /^(?:logout|beginSingleLogout|switchOrganization|deleteUser|changePassword|resetPassword|updateUser|leave)/;

/** An operation with the same field under several names. */
function documentOf({ kind, name, field }: RootField, args: object, aliases: readonly string[]): string {
  const used = field.args.filter((argument) => argument.name in args);
  const declared = used.map((argument) => `$${argument.name}: ${argument.type.toString()}`).join(', ');
  const passed = used.map((argument) => `${argument.name}: $${argument.name}`).join(', ');
  const call = `${name}${passed ? `(${passed})` : ''} ${selectionOf(field.type, 1)}`;
  return `${kind} ${declared ? `(${declared}) ` : ''}{ ${aliases.map((alias) => `${alias}: ${call}`).join(' ')} }`;
}

const recordsOf = async (traceId: string) => {
  await app.services.activity.flush();
  return app.database.prisma.activity.findMany({ where: { traceId }, orderBy: { id: 'asc' } });
};

/** The answer to some operations in one request, and what they left, at least so many records. */
async function asked(query: string, variables: Record<string, unknown>, authorization: string, atLeast: number) {
  const traceId = `graphql-${++number}`;
  const request = graphqlRequest(query, variables, authorization);
  const answer = await app.server.inject({ ...request, headers: { ...request.headers, 'x-trace-id': traceId } });
  const { errors = [] } = answer.json<{ errors?: { path?: string[]; extensions: { code: string } }[] }>();
  const codes = errors.filter(({ path }) => path?.length === 1).map(({ extensions }) => extensions.code);
  // an error in a field that is never null is answered at once, while other fields still run
  await waitFor(async () => expect((await recordsOf(traceId)).length).toBeGreaterThanOrEqual(atLeast));
  return { body: answer.body, codes, records: await recordsOf(traceId) };
}

const of = (root: RootField) => argumentsOf(root, { ...world, password: PASSWORD });
/** A test of a tool instance may end badly, and is answered nevertheless. */
const outcomes = (records: readonly { statusCode: number; errorCode: string | null }[]) =>
  records.map(({ statusCode, errorCode }) => (statusCode < 400 ? 'success' : String(errorCode))).sort();

const queries = recorded.filter(({ kind }) => kind === 'query');
/** What others need goes last. */
const mutations = recorded
  .filter(({ kind }) => kind === 'mutation')
  .sort((a, b) => Number(a.name.startsWith('delete')) - Number(b.name.startsWith('delete')));

test('operations are found', () => {
  expect(queries.length).toBeGreaterThan(60);
  expect(mutations.length).toBeGreaterThan(60);
});

test.each(queries.map((root) => [titleOf(root), root] as const))(
  '%s leaves one record for each time that it is asked, whoever asks',
  async (_title, root) => {
    for (const caller of [world.as('owner').authorization, outsider]) {
      const { body, codes, records } = await asked(documentOf(root, of(root), ['a', 'b']), of(root), caller, 2);
      expect(records, body).toHaveLength(2);
      // an error in a field that is never null hides the other one
      const outcome = codes[0] ?? 'success';
      expect(outcomes(records), body).toEqual([outcome, outcome]);
      const label = labelOf(root);
      for (const record of records) {
        // reading the values of versions is a reveal
        if (label && record.action !== 'reveal') {
          const { action, resourceType, byResolver } = label;
          expect(record).toMatchObject(byResolver ? { action } : { action, resourceType });
        }
        expect(record).toMatchObject({ method: 'POST', path: '/graphql' });
      }
    }
  },
);

test('several operations of one request leave a record each, refused and invalid ones too', async () => {
  const query = `query ($org: ID!, $ws: ID!) {
    a: workspace(orgId: $org, id: $ws) { id }
    b: workspace(orgId: "org_other", id: $ws) { id }
    c: workspace(orgId: $org, id: "ws_none") { id }
    d: workspaces(orgId: $org, first: 0) { totalCount }
    e: node(id: $ws) { id }
    f: node(id: "sec_00000000000000000000000000") { id }
  }`;
  const variables = { org: world.ids.org_id, ws: world.ids.workspace_id };
  const { body, records } = await asked(query, variables, world.as('owner').authorization, 6);
  expect(
    records.map((one) => `${one.action} ${one.resourceType} ${one.resourceId} ${one.errorCode}`).sort(),
    body,
  ).toEqual(
    [
      `read workspace ${world.ids.workspace_id} null`,
      `read workspace ${world.ids.workspace_id} null`,
      'read workspace null FORBIDDEN',
      'read workspace null RESOURCE_NOT_FOUND',
      'list workspace null VALIDATION_ERROR',
      'read secret null null',
    ].sort(),
  );
});

test.each(recorded.filter(({ kind }) => kind === 'subscription').map((root) => [titleOf(root), root] as const))(
  '%s leaves one record when it starts, and one when it is refused',
  async (_title, root) => {
    for (const [caller, outcome] of [
      [world.as('owner').authorization, 'success'],
      // what takes no argument is of whoever asks
      [outsider, root.field.args.length === 0 ? 'success' : 'FORBIDDEN'],
    ] as const) {
      const traceId = `graphql-${++number}`;
      const stream = await openEvents(`${url}/graphql`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'text/event-stream',
          authorization: caller,
          'x-trace-id': traceId,
        },
        body: JSON.stringify({ query: documentOf(root, of(root), ['a']), variables: of(root) }),
      });
      await waitFor(async () => expect(outcomes(await recordsOf(traceId))).toEqual([outcome]));
      stream.close();
    }
  },
);

test.each(mutations.map((root) => [titleOf(root), root] as const))(
  '%s leaves one record, done or refused',
  async (_title, root) => {
    const ending = ENDS_SESSION.test(root.name);
    for (const caller of [outsider, ...(ending ? [] : [world.as('owner').authorization])]) {
      if (ending && caller === outsider && /^logout|^beginSingleLogout|^switch/.test(root.name)) continue;
      const { body, codes, records } = await asked(documentOf(root, of(root), ['a']), of(root), caller, 1);
      expect(records, body).toHaveLength(1);
      expect(outcomes(records), body).toEqual(codes.length > 0 ? codes : ['success']);
    }
  },
);

test('no record names a namespace by a word', async () => {
  const { rows } = await app.database.pool.query(`select path from activity where namespace_id = 'default'`);
  expect(rows).toEqual([]);
});
