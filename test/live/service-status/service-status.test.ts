import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SigningKeys } from '../../../src/access/signing-keys.ts';
import { version } from '../../../src/paths.ts';
import { type JobState, jobStates } from '../../../src/platform/jobs/jobs.ts';
import { startOwnApp, startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, platformAdmin, register } from '../../support/person.ts';
import { graphqlRequest } from '../../support/requests.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';

const QUERY = `{ serviceStatus {
  node { version startedAt workerCount runningWorkerCount }
  nodes { id hostName address version startedAt lastSeenAt workerCount runningWorkerCount status problem isAnswering }
  databaseClients { address connectionCount oldestConnectionAt }
  jobs { task waitingCount retryingCount runningCount failedCount oldestWaitingSeconds }
  eventLag { waitingCount lagSeconds }
  rootKeys { id createdAt sealedCount isCurrent isPresent }
  signingKeys { id createdAt retiredAt }
} }`;

interface Status {
  node: { version: string; startedAt: string; workerCount: number; runningWorkerCount: number };
  nodes: ({ id: string; hostName: string; status: string; isAnswering: boolean } & Record<string, unknown>)[];
  databaseClients: { address: string | null; connectionCount: number; oldestConnectionAt: string }[];
  jobs: ({ task: string; oldestWaitingSeconds: number | null } & Record<string, unknown>)[];
  eventLag: { waitingCount: number; lagSeconds: number };
  rootKeys: { id: string; createdAt: string; sealedCount: number; isCurrent: boolean; isPresent: boolean }[];
  signingKeys: { id: string; createdAt: string | null; retiredAt: string | null }[];
}

let app: TestApp;
let admin: Person;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  admin = await platformAdmin(app); // the first account is one anyway
  owner = await register(app, { name: 'owner' });
});
afterAll(() => app.close());

const statusOf = async (person: Person): Promise<Status> =>
  (await person.ask<{ serviceStatus: Status }>(QUERY)).data.serviceStatus;

const refused = {
  data: null,
  errors: [expect.objectContaining({ extensions: expect.objectContaining({ code: 'FORBIDDEN' }) as object })],
};

describe('the state of the service', () => {
  test('has the node, the connections of nodes, and the lag of events', async () => {
    const { node, databaseClients, eventLag } = await statusOf(admin);
    expect(node).toEqual({
      version,
      startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
      workerCount: 1,
      runningWorkerCount: 1,
    });
    expect(Date.parse(node.startedAt)).toBeLessThanOrEqual(Date.now());
    expect(databaseClients.reduce((sum, { connectionCount }) => sum + connectionCount, 0)).toBeGreaterThan(0);
    expect(eventLag).toEqual({
      waitingCount: expect.any(Number) as number,
      lagSeconds: expect.any(Number) as number,
    });
  });

  test('has all nodes: how they are, and those that were lost for a day', async () => {
    const node = await startOwnApp({ ownDatabase: true });
    const operator = await platformAdmin(node);
    const { pool } = node.database;
    const other = await node.another();
    const nodesOf = async () => (await statusOf(operator)).nodes;
    const of = async (isAnswering: boolean) => (await nodesOf()).filter((one) => one.isAnswering === isAnswering);
    await waitFor(async () => expect([await of(true), await of(false)].map(({ length }) => length)).toEqual([1, 1]));
    const counted = async () =>
      [...(await node.server.inject('/metrics')).body.matchAll(/^platform_nodes\{version="(.*)"\} (\d+)$/gm)].map(
        ([, of = '', count]) => [of, Number(count)],
      );
    expect(await counted()).toEqual([[version, 2]]);
    const [own] = await of(true);
    expect(own).toMatchObject({
      hostName: hostname(),
      version,
      workerCount: 1,
      runningWorkerCount: 1,
      status: 'ready',
      problem: null,
    });
    expect(Math.abs(Date.parse(String(own!.startedAt)) - performance.timeOrigin)).toBeLessThanOrEqual(1);
    const [theirs] = await of(false);
    // one that stops says so, and leaves
    await other.close();
    expect(await of(false)).toEqual([]);
    const lost = `insert into nodes (id, host_name, version, started_at, last_seen_at, worker_count,
      running_worker_count, problem) values ($1, $1, '0.1', now() - interval '2 days', now() - $2::interval, 2, 1, $3)`;
    await pool.query(lost, ['heard', '1 s', 'no files']);
    await pool.query(lost, ['lost', '46 s', null]);
    await pool.query(lost, ['forgotten', '25 hours', null]);
    const shown = async () => (await of(false)).map(({ id, status, problem }) => [id, status, problem]);
    expect(await shown()).toEqual([
      ['heard', 'not_ready', 'no files'],
      ['forgotten', 'away', null],
      ['lost', 'away', null],
    ]);
    expect(await counted()).toEqual(
      expect.arrayContaining([
        [version, 1],
        ['0.1', 1],
      ]),
    );
    await node.retention.run();
    expect((await shown()).map(([id]) => id)).toEqual(['heard', 'lost']);
    expect(theirs!.id).not.toBe(own!.id);
    await node.close();
  });

  test('has every task, and the jobs that wait', async () => {
    await app.database.pool.query(
      `insert into jobs._private_tasks (identifier) values ('retention') on conflict do nothing`,
    );
    await app.database.pool.query(
      `insert into jobs._private_jobs (task_id, run_at)
        select id, now() + interval '1 day' from jobs._private_tasks, generate_series(1, 3)
        where identifier = 'retention'`,
    );
    const { jobs } = await statusOf(admin);
    expect(jobs.map(({ task }) => task)).toEqual(app.services.jobQueue.tasks.map(({ name }) => name).sort());
    expect(jobs.find(({ task }) => task === 'retention')!.waitingCount).toBeGreaterThanOrEqual(3);
  });

  test('has the ids of keys and what they seal, and no key', async () => {
    const before = (await statusOf(admin)).rootKeys.find(({ isCurrent }) => isCurrent)?.sealedCount ?? 0;
    const { status } = await owner.call('POST', `/v1/orgs/${owner.orgId}/secrets`, {
      name: 'KEY',
      secret_type: 'token',
      value: { value: 'a value that nobody sees' },
    });
    expect(status).toBe(201);
    const answer = await statusOf(admin);
    const current = answer.rootKeys.filter(({ isCurrent }) => isCurrent);
    expect(current).toEqual([expect.objectContaining({ isPresent: true, sealedCount: before + 1 })]);
    const keys = await SigningKeys.open(app.keysDir);
    expect(answer.signingKeys[0]).toMatchObject({ id: (await keys.current()).kid, retiredAt: null });
    const stored = JSON.parse(readFileSync(path.join(app.keysDir, 'jwt.json'), 'utf8')) as { jwk: { d: string } }[];
    for (const { jwk } of stored) expect(JSON.stringify(answer)).not.toContain(jwk.d);
  });

  test('is refused to the owner of an organization, and to every token, also of an administrator', async () => {
    expect(await owner.ask(QUERY)).toEqual(refused);
    const { plaintext_token: token } = await issueToken(app, admin, { scopes: ['admin'] });
    const asked = await app.server.inject(graphqlRequest(QUERY, {}, `Bearer ${token}`));
    expect(asked.json()).toEqual(refused);
  });

  test('is refused from the moment on in which somebody no longer administers the platform', async () => {
    const former = await platformAdmin(app);
    expect((await statusOf(former)).node.version).toBe(version);
    await app.database.pool.query('update users set is_platform_admin = false where id = $1', [former.userId]);
    app.services.authentication.sessionsChanged(); // what a node knows of callers is some moments old
    expect(await former.ask(QUERY)).toEqual(refused);
  });
});

test('jobs are counted by their state, up to a limit, with the age of the oldest that could run', async () => {
  const client = await app.database.pool.connect();
  try {
    // never committed: no worker sees them
    await client.query('begin');
    await client.query(`insert into jobs._private_tasks (identifier) values ('counted'), ('idle')`);
    await client.query(
      `insert into jobs._private_jobs (task_id, run_at, attempts, max_attempts, locked_at)
        select t.id, now() + j.due * interval '1 second', j.attempts, 3, case when j.runs then now() end
        from jobs._private_tasks t, (values (-60, 0, false), (-5, 0, false), (3600, 0, false), (-90, 1, false),
          (-300, 1, true), (-900, 3, false)) j(due, attempts, runs) where t.identifier = 'counted'`,
    );
    const counted = async (limit: number | null) =>
      jobStates(async (text, values) => (await client.query<JobState>(text, values)).rows, ['counted', 'idle'], limit);
    const all = await counted(null);
    expect(all).toHaveLength(8);
    expect(all).toEqual(
      expect.arrayContaining([
        { task: 'counted', state: 'waiting', count: 3, oldestSeconds: 60 },
        { task: 'counted', state: 'retrying', count: 1, oldestSeconds: 90 },
        { task: 'counted', state: 'running', count: 1, oldestSeconds: null },
        { task: 'counted', state: 'dead', count: 1, oldestSeconds: null },
        { task: 'idle', state: 'waiting', count: 0, oldestSeconds: null },
      ]),
    );
    expect((await counted(0)).reduce((sum, { count }) => sum + count, 0)).toBe(0);
  } finally {
    await client.query('rollback');
    client.release();
  }
});
