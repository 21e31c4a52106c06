// own process: it copies the project, builds the copy and runs its service
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { projectRoot } from '../../src/paths.ts';
import { Client, type Json } from '../support/client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Service, startService } from '../support/service.ts';
import { slowness } from '../support/slowness.ts';
import { openEvents } from '../support/sockets.ts';
import { waitFor } from '../support/wait.ts';

/*
 * The walk of docs/contribute/add-a-resource.md, in a copy of the project: a resource in each kind of place is written
 * by the generator, and nothing by hand.
 */

interface Walked {
  name: string;
  group: string;
  place: string;
  /** Its type, its list in GraphQL, and its key in REST. */
  type: string;
  list: string;
  key: string;
  prefix: string;
}

const walked: Walked[] = [
  // the one of the page
  {
    name: 'field_note',
    group: 'knowledge',
    place: 'namespace',
    type: 'FieldNote',
    list: 'fieldNotes',
    key: 'field_notes',
    prefix: 'fn',
  },
  { name: 'policy', group: 'pipelines', place: 'app', type: 'Policy', list: 'policies', key: 'policies', prefix: 'po' },
  {
    name: 'saved-view',
    group: 'insight',
    place: 'workspace',
    type: 'SavedView',
    list: 'savedViews',
    key: 'saved_views',
    prefix: 'sv',
  },
  { name: 'label', group: 'models', place: 'organization', type: 'Label', list: 'labels', key: 'labels', prefix: 'lb' },
];

const PARTS = ['src', 'rest', 'prisma', 'scripts', 'public', 'docs', 'console'];
const FILES = /^(?:package.*|tsconfig.*|biome)\.json$|^prisma\.config\.ts$|^rolldown\.config\.mjs$|^\.gitignore$/;

let copy: string;
let database: TestDatabase;
let service: Service;
let url: string;
let ann: Client;
let token: string;
const ids: Record<string, string> = {};
/** The files that the generator says to have written, by name. */
const written = new Map<string, string[]>();

/** What the compiler says of the copy; `undefined` where it finds no fault. */
let typeFaults: Promise<string | undefined>;

const run = async (...args: string[]): Promise<string> => {
  const { PATH, TMPDIR } = process.env;
  // the compiler is written in Go: it collects garbage less often
  const env = { PATH, GOGC: '800', ...(TMPDIR && { TMPDIR }) };
  return (await promisify(execFile)(process.execPath, args, { cwd: copy, env })).stdout;
};

/** The project without what is built, with the packages of this one. */
function copyProject(): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'walk-'));
  const files = readdirSync(projectRoot).filter((name) => FILES.test(name));
  for (const name of [...PARTS, ...files]) {
    const isOwn = (from: string) =>
      from !== path.join(projectRoot, 'src', 'generated') && !from.endsWith('node_modules');
    cpSync(path.join(projectRoot, name), path.join(dir, name), { recursive: true, filter: isOwn });
  }
  mkdirSync(path.join(dir, 'node_modules'));
  // what the build remembers is its own
  for (const name of readdirSync(path.join(projectRoot, 'node_modules')))
    if (name !== '.cache')
      symlinkSync(path.join(projectRoot, 'node_modules', name), path.join(dir, 'node_modules', name));
  return dir;
}

beforeAll(async () => {
  copy = copyProject();
  for (const { name, group, place, prefix } of walked) {
    const options = ['--group', group, '--in', place, ...(name === 'label' ? ['--prefix', prefix] : [])];
    const said = await run('--import', 'tsx', 'scripts/new-resource.ts', name, ...options);
    written.set(
      name,
      said.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.trim()] : [])),
    );
  }
  await run('scripts/build.mjs');
  // the build leaves types to this; meanwhile, the service is tried
  typeFaults = run(path.join('node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json', '--noEmit').then(
    () => undefined,
    ({ stdout, message }: Error & { stdout?: string }) => stdout || message,
  );
  database = await createTestDatabase({ template: 'template0' });
  const env = { DATABASE_URL: database.url, DATA_DIR: path.join(copy, '.data') };
  service = startService(env, { root: copy, isBuilt: true });
  url = await service.url();
  const anyone = new Client(url);
  const account = { email: 'ann@example.test', username: 'ann', password: 'the password of a walk' };
  const { access_token, user } = (await anyone.post('/v1/auth/register', account)) as {
    access_token: string;
    user: Json & { settings: Json };
  };
  token = access_token;
  ann = anyone.with(token);
  ids.org_id = String(user.settings.current_org_id);
  ids.workspace_id = String(user.default_workspace_id);
  const home = `/v1/orgs/${ids.org_id}/workspaces/${ids.workspace_id}`;
  ids.namespace_id = String((await ann.post(`${home}/namespaces`, { name: 'n', slug: 'n' })).namespace_id);
  ids.app_id = String((await ann.post(`${home}/apps`, { name: 'a' })).app_id);
}, 240_000 * slowness());

afterAll(async () => {
  await typeFaults;
  service?.child.kill('SIGTERM');
  await service?.exited();
  await database?.drop();
  rmSync(copy, { recursive: true, force: true });
});

test.each(walked)('$name takes ten files besides its migration', ({ name }) => {
  const files = written.get(name)!.filter((file) => !file.startsWith('prisma/migrations/'));
  expect(files.length).toBeLessThanOrEqual(10);
  expect(new Set(files).size).toBe(files.length);
});

/** The path of a place, and its arguments in GraphQL. */
const placeOf = (place: string): { path: string; args: string } => {
  const org = `/v1/orgs/${ids.org_id}`;
  if (place === 'organization') return { path: org, args: `orgId: "${ids.org_id}"` };
  const home = {
    path: `${org}/workspaces/${ids.workspace_id}`,
    args: `orgId: "${ids.org_id}", workspaceId: "${ids.workspace_id}"`,
  };
  if (place === 'workspace') return home;
  const id = ids[`${place}_id`];
  return { path: `${home.path}/${place}s/${id}`, args: `${home.args}, ${place}Id: "${id}"` };
};

/** The types of the events of a stream that are about something. */
const seenIn = (events: readonly { event: string; data: string }[], id: string): string[] =>
  events.flatMap(({ event, data }) => {
    if (event !== 'next') return [];
    const { told } = (JSON.parse(data) as { data: { told: { type: string; resourceId: string } } }).data;
    return told.resourceId === id ? [told.type] : [];
  });

/** The stream that has the events of a place. */
const follow = (place: string) => {
  const query =
    place === 'organization'
      ? `subscription { told: organizationEvents(orgId: "${ids.org_id}") { type resourceId } }`
      : `subscription { told: workspaceEvents(${placeOf('workspace').args}) { type resourceId } }`;
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    authorization: `Bearer ${token}`,
  };
  return openEvents(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
};

test.each(walked)(
  '$name is created, listed, changed and deleted over REST and GraphQL, with events and records',
  async (one) => {
    const { place, type, list, key, prefix } = one;
    const word = one.name.replaceAll('-', '_');
    const { path: above, args } = placeOf(place);
    const folder = `${above}/${key.replaceAll('_', '-')}`;
    const stream = await follow(place);
    const happens = ['created', 'updated', 'deleted'].map((name) => `${word}.${name}`);
    const expectTold = async (id: string) => {
      await waitFor(() => expect(seenIn(stream.events, id)).toEqual(happens));
      const query = `?resource_id=${id}&limit=50`;
      await waitFor(async () => {
        const { activities } = (await ann.get(`/v1/orgs/${ids.org_id}/activity${query}`)) as { activities: Json[] };
        const changes = activities.filter(({ action }) => !['read', 'list'].includes(String(action)));
        expect(changes.map(({ action, resource_type }) => [action, resource_type])).toEqual(
          ['delete', 'update', 'create'].map((action) => [action, word]),
        );
      });
    };

    const made = await ann.post(folder, { name: 'First', description: 'Of a walk.' });
    const id = String(made[`${word}_id`]);
    expect(id.startsWith(`${prefix}_`)).toBe(true);
    expect(made).toMatchObject({ org_id: ids.org_id, name: 'First', description: 'Of a walk.' });
    expect(await ann.get(folder)).toMatchObject({ total: 1, [key]: [made] });
    const changed = await ann.must('PATCH', `${folder}/${id}`, { name: 'Second' });
    expect(changed).toEqual({ ...made, name: 'Second', updated_at: changed.updated_at });
    expect(await ann.call('DELETE', `${folder}/${id}`)).toEqual({ status: 204, body: {} });
    expect((await ann.call('GET', `${folder}/${id}`)).status).toBe(404);
    await expectTold(id);

    const created = await ann.query(
      `mutation { it: create${type}(${args}, input: { name: "Third" }) { id name description } }`,
    );
    const { id: second } = created.it as { id: string };
    expect(created).toEqual({ it: { id: second, name: 'Third', description: null } });
    expect(await ann.query(`{ it: ${list}(${args}) { totalCount nodes { id name } } }`)).toEqual({
      it: { totalCount: 1, nodes: [{ id: second, name: 'Third' }] },
    });
    const input = '{ description: "Changed." }';
    expect(
      await ann.query(
        `mutation { it: update${type}(${args}, id: "${second}", input: ${input}) { resourceVersion description } }`,
      ),
    ).toEqual({ it: { resourceVersion: 2, description: 'Changed.' } });
    expect(await ann.query(`{ node(id: "${second}") { __typename } }`)).toEqual({ node: { __typename: type } });
    expect(
      await ann.query(`mutation { it: delete${type}(${args}, id: "${second}") { id orgId organization { id } } }`),
    ).toEqual({ it: { id: second, orgId: ids.org_id, organization: { id: ids.org_id } } });
    await expectTold(second);
    stream.close();
  },
);

test('what is no name, no group or taken is refused, and writes nothing', async () => {
  const refusal = async (...args: string[]) => {
    const failed = run('--import', 'tsx', 'scripts/new-resource.ts', ...args).then(
      () => 'nothing was refused',
      (error: { stderr: string }) => error.stderr.split('\n')[0],
    );
    return failed;
  };
  expect(
    await Promise.all([
      refusal('Notes', '--group', 'knowledge'),
      refusal('memory', '--group', 'knowledge'),
      refusal('idea', '--group', 'nothing'),
      refusal('idea', '--group', 'knowledge', '--prefix', 'mem'),
      refusal('idea', '--group', 'knowledge', '--in', 'session'),
    ]),
  ).toEqual([
    expect.stringMatching(/^'Notes' is no name/),
    "There is a resource 'memory'.",
    'src/nothing is no group.',
    expect.stringMatching(/^'mem' is no free prefix/),
    'Nothing plain is in a session.',
  ]);
});

test('what was written has no fault of types', async () => {
  expect(await typeFaults).toBeUndefined();
});
