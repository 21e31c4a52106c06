import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ActivityLabel } from '../../src/graphql/plugins/activity-label.ts';
import type { DeclaredEvents } from '../../src/graphql/plugins/events-plugin.ts';
import { describedEvents } from '../../src/kernel/event-details.ts';
import { isOn, wordOf } from '../../src/kernel/event-types.ts';
import type { EventType, ResourceWord } from '../../src/kernel/resources.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { eventCases, withoutCase } from '../support/event-cases.ts';
import type { EventCase } from '../support/event-scenes.ts';
import { expendable } from '../support/expendable.ts';
import { gentlestFirst, routeOf } from '../support/operations.ts';
import { caller } from '../support/person.ts';
import { closeProviders, PUBLIC_URL, prepared } from '../support/prepared.ts';
import { graphqlRequest, injectable, type Parts } from '../support/requests.ts';
import { argumentsOf, documentOf, type RootField, rootFields } from '../support/root-fields.ts';
import { type EventSource, openEvents, type SentEvent } from '../support/sockets.ts';
import { waitUntil } from '../support/wait.ts';
import { createWorld, type World } from '../support/world.ts';

/*
 * Every mutation runs, and the events and the record that it leaves are compared with what its field declares: `emits`,
 * `mayEmit` and `activity`. The trace of the request tells its events and its record from those of others.
 */

let app: TestApp;
let world: World;
let url: string;
beforeAll(async () => {
  app = await startTestApp({ env: { OUTBOUND_ALLOW: '127.0.0.1', PUBLIC_URL } });
  url = await app.listen();
  world = await createWorld(app);
});
afterAll(async () => {
  await app.close();
  await closeProviders();
});

interface Run {
  root: RootField;
  declared: DeclaredEvents;
  label: ActivityLabel | null;
  case: EventCase;
}

const changes = gentlestFirst();
const routeFor = (name: string) => changes.find(({ rootField }) => rootField === name);
/** Those without a route in the middle: what ends something comes last. */
const order = (name: string) => {
  const at = changes.findIndex(({ rootField }) => rootField === name);
  return at === -1 ? changes.length / 2 : at;
};
const mutations = rootFields
  .filter(({ kind }) => kind === 'mutation')
  .sort((a, b) => order(a.name) - order(b.name))
  .map((root) => ({
    root,
    declared: root.field.extensions.events as DeclaredEvents,
    label: root.field.extensions.record as ActivityLabel | null,
  }));
const runs: Run[] = mutations.flatMap((mutation) =>
  (eventCases[mutation.root.name] ?? [{}]).map((each) => ({ ...mutation, case: each })),
);

/** Emitted by the service alone, in the background. */
const byItself: readonly EventType[] = [
  'action.fired',
  'webhook.disabled',
  'audit_stream.disabled',
  'artifact.indexed',
  'artifact.index_failed',
  'artifact.expired',
  'secret.expiring',
  'api_token.expiring',
  'app_token.expiring',
  'connection.needs_reauth',
  'presence.left',
];
/** It follows from an event, or from what is announced: the table of rules says of which, and to whom. */
const NOTIFIED: EventType = 'notification.created';
/** What stopped being true by the change: the table of rules says when. */
const RESOLVED: EventType = 'notification.resolved';

const typesOf = ({ declared, case: { emits = [] } }: Run) => [...declared.always, ...emits];
const recordOf = ({ label, case: { record } }: Run) =>
  record ?? (label ? `${label.action} ${label.resourceType}` : null);
const titleOf = (run: Run) => {
  const record = recordOf(run);
  const types = typesOf(run);
  return (
    `${[run.root.name, run.case.when].filter(Boolean).join(' ')}: emits ${types.join(', ') || 'no event'}, ` +
    `and is ${record ? `recorded as ${record.replace(' ', ' of ')}` : 'not recorded'}`
  );
};

/** A valid request, with what the case makes of it. */
async function partsOf({ root, case: { prepare } }: Run): Promise<Parts> {
  const route = routeFor(root.name);
  const body = route ? undefined : argumentsOf(root, world, { requiredOnly: false });
  const parts = route
    ? await expendable(app, world, route, 'owner', { requiredOnly: false })
    : { params: {}, query: {}, headers: { ...world.as('owner') }, body };
  // what a case does not replace
  if (route) await prepared[routeOf(route)]?.(app, world, parts);
  await prepare?.({ app, world, owner: caller(app, world.accounts.owner), parts });
  return parts;
}

interface Emitted {
  xid: string;
  type: EventType;
  resource_type: ResourceWord;
  resource_id: string;
  org_id: string;
  workspace_id: string | null;
  actor: { principal_id: string | null };
  /** Of what a notification tells. */
  source: string | null;
}

interface Recorded {
  xid: string;
  action: string;
  resource_type: string;
  resource_id: string | null;
  org_id: string | null;
  workspace_id: string | null;
  user_id: string | null;
  status_code: number;
  success: boolean;
}

/** Sends the request, and reads what it left. */
async function outcomeOf(run: Run, traceId: string = randomUUID()) {
  const { root } = run;
  const parts = await partsOf(run);
  parts.headers['x-trace-id'] = traceId;
  const route = routeFor(root.name);
  const args = parts.body as Record<string, unknown>;
  const asked = graphqlRequest(route ? '' : documentOf(root, args, 1), args);
  const request = route ? injectable(route, parts) : { ...asked, headers: { ...asked.headers, ...parts.headers } };
  const answer = await app.server.inject(request);
  const isDone = answer.statusCode === (route?.status ?? 200) && (route !== undefined || !answer.json().errors);
  const place = route ? 'test/support/prepared.ts or test/support/event-cases.ts' : 'test/support/event-cases.ts';
  expect(isDone, `${root.name} needs a sample in ${place}: ${answer.statusCode} ${answer.body}`).toBe(true);
  await app.services.activity.flush();
  const { rows: events } = await app.database.pool.query<Emitted>(
    `select e.*, e.xid::text, n.source_event as source from events e left join notifications n on n.id = e.resource_id
      where e.trace_id = $1 order by e.xid, e.seq`,
    [traceId],
  );
  const { rows: records } = await app.database.pool.query<Recorded>(
    'select a.*, a.xid::text from activity a where a.trace_id = $1',
    [traceId],
  );
  return { parts, status: answer.statusCode, events, records };
}

/** The user of an access token; `null` for no token. */
function userOf({ headers }: Parts): string | null {
  const [, claims] = headers.authorization?.split('.') ?? [];
  return claims ? (JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sub: string }).sub : null;
}

const distinct = (types: readonly string[]) => [...new Set(types)].sort();

type Outcome = Awaited<ReturnType<typeof outcomeOf>>;

/** Whoever signs in, or comes with a mailed link or a refresh token, is known by that. */
const isPublic = ({ root }: Run) => root.field.extensions.access === 'public';

/** The place that a request names. */
function placeOf({ params, body }: Parts) {
  const { orgId, workspaceId } = (body ?? {}) as { orgId?: string; workspaceId?: string };
  return { orgId: params.org_id ?? orgId, workspaceId: params.workspace_id ?? workspaceId };
}

function expectRecord(run: Run, { parts, status, records }: Outcome): void {
  const expected = recordOf(run);
  expect(records.map(({ action, resource_type }) => `${action} ${resource_type}`)).toEqual(expected ? [expected] : []);
  const { orgId, workspaceId } = placeOf(parts);
  for (const record of records) {
    // a call of a provider is answered, and may still have failed
    const hasFailed = run.case.emits?.includes('tool_action.failed');
    expect(record).toMatchObject({ status_code: status, success: !hasFailed });
    expect(record.user_id).toEqual(isPublic(run) ? expect.any(String) : userOf(parts));
    if (!isPublic(run)) expect(record.org_id).toEqual(orgId ?? expect.any(String));
    if (workspaceId) expect(record.workspace_id).toBe(workspaceId);
  }
}

function expectEvents(run: Run, { parts, events }: Outcome): void {
  const emitted = events.filter(({ type }) => type !== NOTIFIED && type !== RESOLVED);
  expect(distinct(emitted.map(({ type }) => type))).toEqual(distinct(typesOf(run)));
  const { orgId, workspaceId } = placeOf(parts);
  for (const { type, resource_type, org_id, workspace_id, actor } of emitted) {
    expect(resource_type).toBe(wordOf(type));
    if (orgId) expect(org_id).toBe(orgId);
    expect(isOn(workspace_id === null ? 'organization' : 'workspace', resource_type, type)).toBe(true);
    if (workspaceId && workspace_id) expect(workspace_id).toBe(workspaceId);
    if (!isPublic(run)) expect(actor.principal_id).toBe(userOf(parts));
  }
  const types = emitted.map(({ type }) => type);
  for (const { source } of events.filter(({ type }) => type === NOTIFIED))
    if (wordOf(source!)) expect(types).toContain(source);
}

/** The record and the events are of one change, and about the same. */
function expectTogether({ parts, events, records: [record] }: Outcome): void {
  if (!record || events.length === 0) return;
  expect(distinct(events.map(({ xid }) => xid))).toEqual([record.xid]);
  const about = events
    .filter(({ resource_type }) => resource_type === record.resource_type)
    .map(({ resource_id }) => resource_id);
  if (about.length > 0 && record.resource_id) expect(about).toContain(record.resource_id);
  // what else the change affects is told inside of its record
  const named = Object.values(parts.params).at(-1)!;
  if (about.includes(named)) expect(record.resource_id).toBe(named);
}

test.each(runs.map((run) => [titleOf(run), run] as const))('%s', async (_title, run) => {
  const outcome = await outcomeOf(run);
  expectEvents(run, outcome);
  expectRecord(run, outcome);
  expectTogether(outcome);
});

test('every event that a mutation may emit is emitted by one of its cases', () => {
  const shown = new Set(runs.flatMap(({ root, case: { emits = [] } }) => emits.map((type) => `${root.name} ${type}`)));
  const may = mutations.flatMap(({ root, declared }) => declared.sometimes.map((type) => `${root.name} ${type}`));
  const missing = may.filter((each) => !shown.has(each) && !(each in withoutCase));
  expect(missing, 'add a case to test/support/event-cases.ts').toEqual([]);
  expect(
    [...shown].filter((each) => !may.includes(each)),
    'declared by mayEmit',
  ).toEqual([]);
  expect(Object.keys(withoutCase).filter((each) => shown.has(each) || !may.includes(each))).toEqual([]);
});

test('every event is declared by a mutation, or emitted by the service itself', () => {
  const declared = mutations.flatMap(({ declared: { always, sometimes } }) => [...always, ...sometimes]);
  const all = describedEvents.map(({ type }) => type);
  expect(distinct([...declared, ...byItself, NOTIFIED, RESOLVED])).toEqual(distinct(all));
  expect(byItself.filter((type) => declared.includes(type))).toEqual([]);
});

test('every case is of a mutation', () => {
  expect(mutations.length).toBeGreaterThan(100);
  const names = mutations.map(({ root }) => root.name);
  expect(Object.keys(eventCases).filter((name) => !names.includes(name))).toEqual([]);
});

describe('on the wire', () => {
  const streams = new Map<string, EventSource>();
  const follow = (channel: string, args: string) =>
    openEvents(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...world.as('owner') },
      body: JSON.stringify({ query: `subscription { ${channel}(${args}) { type resourceId traceId } }` }),
    });
  beforeAll(async () => {
    const { org_id, workspace_id } = world.ids;
    const { size } = app.services.tail;
    const organization = `orgId: "${org_id}"`;
    streams.set('organizationEvents', await follow('organizationEvents', organization));
    streams.set('workspaceEvents', await follow('workspaceEvents', `${organization}, workspaceId: "${workspace_id}"`));
    await waitUntil(() => app.services.tail.size >= size + 2);
  });
  afterAll(() => {
    for (const stream of streams.values()) stream.close();
  });

  test.each([
    ['createThread', 'workspaceEvents'],
    ['createSecret', 'workspaceEvents'],
    ['toggleToolInstance', 'workspaceEvents'],
    ['deployRelease', 'workspaceEvents'],
    ['deleteMemory', 'workspaceEvents'],
    ['createInvitation', 'organizationEvents'],
    ['updateLogicalModel', 'organizationEvents'],
    ['createWorkspace', 'organizationEvents'],
  ])('what %s emits comes on the stream %s', async (name, channel) => {
    const run = runs.find(({ root }) => root.name === name)!;
    const traceId = randomUUID();
    const { events } = await outcomeOf(run, traceId);
    const { type, resource_id: resourceId } = events.find((event) => typesOf(run).includes(event.type))!;
    const isIt = ({ data }: SentEvent) => data.includes(traceId) && data.includes(`"${type}"`);
    const { data } = await streams.get(channel)!.next(isIt);
    expect(JSON.parse(data)).toEqual({ data: { [channel]: { type, resourceId, traceId } } });
  });
});
