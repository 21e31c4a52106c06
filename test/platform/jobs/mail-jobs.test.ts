// own process: starts processes, which is slow from a large process
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { freePort } from '../../support/free-port.ts';
import { whileRetriesWait } from '../../support/held-jobs.ts';
import { type MailServer, startMailServer } from '../../support/mail-server.ts';
import { type Service, startService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const EMAIL = 'ann@example.test';
/** So long that random letters never spell it. */
const USERNAME = 'ann-of-the-mails';

let database: TestDatabase;
let db: pg.Client;
let dataDir: string;
let services: Service[];
let mail: MailServer | undefined;

beforeEach(async () => {
  database = await createTestDatabase();
  db = new pg.Client({ connectionString: database.url });
  await db.connect();
  dataDir = mkdtempSync(path.join(tmpdir(), 'mail-jobs-'));
  services = [];
});
afterEach(async () => {
  for (const { child } of services) child.kill('SIGKILL');
  await Promise.all(services.map((service) => service.exited()));
  await mail?.stop();
  mail = undefined;
  await db.end();
  await database.drop();
  rmSync(dataDir, { recursive: true });
});

function start(smtpUrl: string): Service {
  const service = startService({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    SMTP_URL: smtpUrl,
    ROOT_KEYS: `test:${Buffer.alloc(32, 1).toString('base64')}`,
  });
  services.push(service);
  return service;
}

async function register(service: Service): Promise<void> {
  const answer = await fetch(`${await service.url()}/v1/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: EMAIL, username: USERNAME, password: 'correct horse battery' }),
  });
  expect(answer.status).toBe(201);
}

const soon = (check: () => unknown) => waitFor(check);
const mailJobs = async () =>
  (
    await db.query<{ payload: object; attempts: number; locked: boolean }>(
      `select j.payload, j.attempts, j.locked_at is not null as locked
       from jobs._private_jobs j join jobs._private_tasks t on t.id = j.task_id where t.identifier = 'mail'`,
    )
  ).rows;
const makeDue = () => db.query('update jobs._private_jobs set run_at = now() where locked_at is null');

it('sends the mail of an acknowledged change once, after kill -9 and a mail server that was away', async () => {
  const port = await freePort();
  const killed = start(`smtp://127.0.0.1:${port}`);
  await killed.url(); // the tables are there
  await whileRetriesWait(db, async () => {
    await register(killed);
    await soon(async () => expect(await mailJobs()).toMatchObject([{ attempts: 1, locked: false }]));
  });
  // neither the token nor who it is for can be read from the database
  const kept = JSON.stringify(await mailJobs());
  for (const text of ['token=', EMAIL, USERNAME]) expect(kept).not.toContain(text);
  await soon(() => expect(killed.output()).toContain(`a job of the task 'mail' failed and is tried again`));
  killed.child.kill('SIGKILL');
  await killed.exited();
  expect(killed.output()).not.toContain('token=');

  mail = await startMailServer(port);
  await start(mail.url).url();
  await makeDue();
  await mail.mailTo(EMAIL);
  await soon(async () => expect(await mailJobs()).toEqual([]));
  expect(mail.received).toHaveLength(1);
});

it('sends a mail whose node was killed while it sent it', async () => {
  const sockets: Socket[] = [];
  // takes connections and says nothing
  const silent: Server = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  const killed = start(`smtp://127.0.0.1:${port}`);
  await register(killed);
  await soon(async () => expect(await mailJobs()).toMatchObject([{ attempts: 1, locked: true }]));
  await soon(() => expect(sockets).toHaveLength(1));
  killed.child.kill('SIGKILL');
  await killed.exited();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));

  mail = await startMailServer();
  // a start may take longer than a lease
  await db.query(`update jobs._private_jobs set locked_at = now() + interval '10 minutes'`);
  const next = start(mail.url);
  await next.url();
  expect(await mailJobs()).toMatchObject([{ locked: true }]);
  // as if its lease were over
  await db.query(`update jobs._private_jobs set locked_at = now() - interval '21 seconds'`);
  await mail.mailTo(EMAIL);
  await soon(async () => expect(await mailJobs()).toEqual([]));
  expect(mail.received).toHaveLength(1);
});

it('sends each mail once when there are two nodes', async () => {
  mail = await startMailServer();
  const nodes = [start(mail.url)];
  await nodes[0]!.url();
  nodes.push(start(mail.url));
  await nodes[1]!.url();
  await register(nodes[0]!);
  await mail.mailTo(EMAIL);
  const asked = nodes.map(async (node) =>
    fetch(`${await node.url()}/v1/auth/forgot-password`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: EMAIL }),
    }),
  );
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200]);
  await soon(async () => {
    expect(
      (await db.query('select 1 from jobs._private_jobs where attempts = 0 or locked_at is not null')).rowCount,
    ).toBe(0);
    expect(mail!.received).toHaveLength(3);
  });
  expect(new Set(mail.received.map(({ messageId }) => messageId)).size).toBe(3);
});
