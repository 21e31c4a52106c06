import { afterAll, beforeAll, expect, test } from 'vitest';
import { tableNamed, tableOf } from '../../src/data/tables.ts';
import { newId } from '../../src/kernel/ids.ts';
import {
  declarationOf,
  isResourceWord,
  type PlaceKind,
  placeKinds,
  placesOf,
  type ResourceWord,
  resources,
  resourceWords,
} from '../../src/kernel/resources.ts';
import { atLeast, type Role, roles } from '../../src/kernel/roles.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { openEvents } from '../support/sockets.ts';
import { thinned } from '../support/thinned.ts';
import { issueToken } from '../support/tokens.ts';
import { twinOf } from '../support/twin.ts';
import { waitFor } from '../support/wait.ts';
import { createWorld, type World } from '../support/world.ts';

/**
 * Every event that the table of resources lists, in whatever places it may name, and everybody who may follow the
 * workspace. Who may read what the event is about, and so hears of it, is written here once more, by hand.
 */
type Below = Exclude<PlaceKind, 'organization' | 'workspace'>;
type Named = Partial<Record<Below, string>>;

const below = placeKinds.filter((kind): kind is Below => kind !== 'organization' && kind !== 'workspace');

/** The kinds of places below a workspace that something always lies in, where the table of its name does not tell. */
const themselves: Partial<Record<ResourceWord, readonly Below[]>> = {
  namespace: ['namespace'],
  app: ['app'],
  environment: ['environment'],
  app_token: ['app'],
};

/** What has rows lies in what each of its rows must name: that is not taken from the table of resources. */
function liesIn(word: ResourceWord): readonly Below[] {
  const table = tableNamed(word);
  return themselves[word] ?? below.filter((kind) => table && tableOf(table).required.has(`${kind}Id`));
}

/** The least role that reads it, if not every role does. `null`: it is in no workspace. */
const readFrom: Partial<Record<ResourceWord, Role | null>> = {
  organization: null,
  organization_member: null,
  identity_provider: null,
  application: null,
  scim_token: null,
  webhook: null,
  audit_stream: null,
  invitation: null,
  api_token: null,
  model: null,
  provider_account: null,
  tool: null,
  organization_recipe: null,
  secret: 'member',
  app_token: 'editor',
};

/** The permission to read it, if that is not its own. */
const readBy: Partial<Record<ResourceWord, string>> = {
  deployment: 'environment:read',
  presence: 'sync:subscribe',
  tool_action: 'tool_instance:read',
};

/** What a token may read that may read some things only. */
const SOME = ['sync:subscribe', 'secret:read', 'environment:read', 'workspace_member:read', 'entity:read'];

interface Listener {
  title: string;
  role: Role;
  /** What a token may read; `null` for everything that its owner may. */
  may: readonly string[] | null;
  userId: string;
  authorization: string;
  /** Of a token the kind of place that it is restricted to; `null` for those who are not restricted. */
  restrictedTo: PlaceKind | null;
}

interface Placed {
  id: string;
  type: string;
  resourceType: string;
  named: Named;
  /** The only user who hears it. */
  recipientId?: string | undefined;
  /** What the user looks at that the event is about. */
  viewed?: ResourceWord | undefined;
}

let app: TestApp;
let url: string;
let world: World;
/** Places of the world, and others of the same workspace. */
const own: Named = {};
const other: Named = {};
let events: Placed[];
let listeners: Listener[];
let heard: ReadonlyMap<string, ReadonlySet<string>>;

// the one that ends every stream of its workspace can come only once
const listed = resourceWords
  .flatMap((word) => (declarationOf(word).events ?? []).map((name) => [`${word}.${name}`, word] as const))
  .filter(([type]) => type !== 'workspace.deleted');

/**
 * Nothing named, all the own places, and of each kind of place alone and beside the others, the own one and another,
 * some.
 */
const placings = (type: string): Named[] => [
  {},
  own,
  ...below.flatMap((kind) =>
    thinned([{ [kind]: own[kind]! }, { [kind]: other[kind]! }, { ...own, [kind]: other[kind]! }], `${type} in ${kind}`),
  ),
];

const titles = [
  ...roles,
  'free token',
  'token of some permissions',
  'token without permissions',
  ...placeKinds.slice(1).map((kind) => `token of one ${kind}`),
];

beforeAll(async () => {
  app = await startTestApp();
  url = await app.listen();
  world = await createWorld(app);
  for (const kind of below) {
    const id = world.ids[`${kind}_id`]!;
    own[kind] = id;
    other[kind] = (await twinOf(app.database.pool, id, world.marker)).ids.get(id)!;
  }
  events = [...listed, ['unknown.created', 'unknown'] as const].flatMap(([type, resourceType]) =>
    placings(type).flatMap((named) =>
      recipientsOf(resourceType).flatMap((recipientId) =>
        viewedBy(type).map((viewed) => ({ id: newId('event'), type, resourceType, named, recipientId, viewed })),
      ),
    ),
  );
  listeners = await everybody();
  heard = await hearing(listeners, events);
});
afterAll(() => app.close());

/** Notifications are somebody's own; one of nobody is a mistake that nobody hears of. */
const recipientsOf = (resourceType: string): (string | undefined)[] =>
  resourceType === 'notification'
    ? [world.accounts.owner.userId, world.accounts.viewer.userId, world.stranger.userId, undefined]
    : [undefined];

const viewedBy = (type: string): (ResourceWord | undefined)[] =>
  type === 'presence.viewing' ? ['thread', 'secret', 'app_token', undefined] : [undefined];

async function tokenOf(restriction: Record<string, unknown>): Promise<string> {
  const maker = { orgId: world.ids.org_id!, headers: world.as('owner') };
  return (await issueToken(app, maker, { permissions: ['sync:subscribe', '*:read'], ...restriction })).headers
    .authorization;
}

async function everybody(): Promise<Listener[]> {
  const { ids } = world;
  const { userId } = world.accounts.owner;
  const ofOwner = { role: 'owner', userId, may: null, restrictedTo: null } as const;
  const unrestricted = async (title: string, permissions?: string[]) => ({
    ...ofOwner,
    title,
    ...(permissions && { may: permissions }),
    authorization: await tokenOf(permissions ? { permissions } : {}),
  });
  return [
    ...roles.map((role) => ({
      ...ofOwner,
      title: role,
      role,
      userId: world.accounts[role].userId,
      authorization: world.as(role).authorization,
    })),
    await unrestricted('free token'),
    await unrestricted('token of some permissions', SOME),
    await unrestricted('token without permissions', ['sync:subscribe']),
    ...(await Promise.all(
      Object.entries({
        workspace: { workspace_ids: [ids.workspace_id] },
        namespace: { namespace_ids: [ids.namespace_id] },
        environment: { environment_ids: [ids.environment_id] },
        app: { app_id: ids.app_id },
      }).map(async ([kind, restriction]) => ({
        ...ofOwner,
        title: `token of one ${kind}`,
        authorization: await tokenOf(restriction),
        restrictedTo: kind as PlaceKind,
      })),
    )),
  ];
}

const follow = (authorization: string) =>
  openEvents(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', authorization },
    body: JSON.stringify({
      query: `subscription { workspaceEvents(orgId: "${world.ids.org_id}", workspaceId: "${world.ids.workspace_id}") {
        resourceId } }`,
    }),
  });

/** Events of one transaction: a stream for which 1,000 wait is ended. */
const AT_ONCE = 500;

/** What each of them hears of these events: the ids that the events are of. */
async function hearing(listeners: readonly Listener[], placed: readonly Placed[]) {
  const streams = await Promise.all(listeners.map(({ authorization }) => follow(authorization)));
  await waitFor(() => expect(app.services.tail.size).toBe(streams.length));
  for (let from = 0; from < placed.length; from += AT_ONCE) {
    // all of them hear it
    const last = { id: newId('event'), type: 'presence.joined', resourceType: 'presence', named: {} };
    await emit([...placed.slice(from, from + AT_ONCE), last]);
    await Promise.all(streams.map((stream) => stream.next(({ data }) => data.includes(last.id))));
  }
  const ids = streams.map((stream, index): [string, Set<string>] => {
    stream.close();
    const all = stream.events.flatMap(({ data }) => /"resourceId":"([^"]+)"/.exec(data)?.slice(1) ?? []);
    return [listeners[index]!.title, new Set(all)];
  });
  return new Map(ids);
}

/** Writes events of the workspace to the outbox, in one transaction. */
async function emit(placed: readonly Placed[]): Promise<void> {
  const rows = placed.map(({ id, type, resourceType, named, recipientId, viewed }) => ({
    id: newId('event'),
    org_id: world.ids.org_id,
    workspace_id: world.ids.workspace_id,
    ...Object.fromEntries(Object.entries(named).map(([kind, place]) => [`${kind}_id`, place])),
    recipient_id: recipientId,
    type,
    resource_type: resourceType,
    resource_id: id,
    data: viewed ? { resource_type: viewed, resource_id: 'viewed', previous: null } : {},
  }));
  await app.database.pool.query(
    `insert into events (id, org_id, workspace_id, namespace_id, environment_id, app_id, recipient_id, type, actor,
      resource_type, resource_id, data)
     select r.id, r.org_id, r.workspace_id, r.namespace_id, r.environment_id, r.app_id, r.recipient_id, r.type,
       '{"principal_type": "system", "principal_id": null, "username": null}', r.resource_type, r.resource_id, r.data
     from jsonb_populate_recordset(null::events, $1) with ordinality r order by r.ordinality`,
    [JSON.stringify(rows)],
  );
}

/** Whether a role and the permissions of a token let read it. */
function mayRead({ role, may }: Listener, word: ResourceWord): boolean {
  const { [word]: from = 'viewer' } = readFrom;
  if (from === null || !atLeast(role, from)) return false;
  return may === null || may.includes(readBy[word] ?? `${word}:read`);
}

/**
 * Users hear what their role reads; tokens what their permissions read, too; a restricted token what names the places
 * that it lies in, and no other place. Nobody hears of what the table does not know.
 */
function mayHear(listener: Listener, event: Placed): boolean {
  const { restrictedTo, userId } = listener;
  const { type, resourceType, named, recipientId, viewed } = event;
  if (type.startsWith('unknown.')) return false;
  if (resourceType === 'notification' && (recipientId === undefined || recipientId !== userId)) return false;
  if (!mayRead(listener, resourceType as ResourceWord)) return false;
  if (type === 'presence.viewing' && !(viewed && mayRead(listener, viewed))) return false;
  if (restrictedTo === null) return true;
  if (!isResourceWord(resourceType) || !liesIn(resourceType).every((kind) => named[kind])) return false;
  const kind = restrictedTo as Below;
  return named[kind] === undefined || named[kind] === own[kind];
}

test('the table of resources says where the rows of each resource with events lie', () => {
  for (const word of new Set(listed.map(([, word]) => word)))
    expect(
      below.filter((kind) => placesOf(word)?.includes(kind)),
      word,
    ).toEqual(below.filter((kind) => liesIn(word).includes(kind)));
});

test.each(titles)('%s hears of each event that they may read of, and of no other', (title) => {
  const listener = listeners.find((each) => each.title === title)!;
  const said = ({ id, type, named, recipientId, viewed }: Placed, isHeard = heard.get(title)!.has(id)) =>
    [isHeard, type, named, recipientId, viewed] as const;
  expect(events.map((event) => said(event))).toEqual(events.map((event) => said(event, mayHear(listener, event))));
});

test('a resource that forgot where it lies is found out', async () => {
  const ofNamespace = listeners.filter(({ restrictedTo }) => restrictedTo === 'namespace');
  const threads = events.filter(({ resourceType }) => resourceType === 'thread');
  const table: Record<'thread', { in: unknown }> = resources;
  const { thread: declared } = table;
  table.thread = { ...declared, in: 'anywhere' };
  try {
    const ids = (await hearing(ofNamespace, threads)).get(ofNamespace[0]!.title)!;
    const wrong = threads.filter((event) => ids.has(event.id) !== mayHear(ofNamespace[0]!, event));
    expect(wrong.map(({ named }) => named)).toContainEqual({});
  } finally {
    table.thread = declared;
  }
});

test.each([
  ['somebody of another organization', () => `Bearer ${world.stranger.accessToken}`],
  ['a member of the organization who is in no workspace', () => `Bearer ${world.guest.accessToken}`],
])('%s hears nothing', async (_title, authorization) => {
  const stream = await follow(authorization());
  await stream.ended;
  const [first, ...others] = stream.events.filter(({ event }) => event === 'next');
  expect([JSON.parse(first!.data).errors[0].extensions.code, others]).toEqual(['FORBIDDEN', []]);
});
