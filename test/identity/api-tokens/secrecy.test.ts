import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../src/platform/logger.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { register } from '../../support/person.ts';
import { openAcknowledged } from '../../support/sockets.ts';
import { issueToken } from '../../support/tokens.ts';

const log: string[] = [];
let app: TestApp;

beforeAll(async () => {
  const logger = createLogger({ logLevel: 'trace' }, { write: (line) => void log.push(line) });
  app = await startTestApp({ logger });
  await app.listen();
});
afterAll(() => app.close());

/** Every row of every table as text, bytes decoded. */
async function everything(): Promise<string[]> {
  const { pool } = app.database;
  const { rows: tables } = await pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await pool.query<{ text: string }>(`select t::text as text from ${name} t`);
    for (const { text } of rows)
      texts.push(
        text,
        ...[...text.matchAll(/\\\\x([0-9a-f]+)/g)].map(([, hex]) => Buffer.from(hex!, 'hex').toString('latin1')),
      );
  }
  return texts;
}

it('no plaintext of a token stands in a log, a table, an event, a record, a mail, an error or a list', async () => {
  const owner = await register(app);
  const { get, post, delete: remove, graphql } = callsOf(app);
  const tokens = `/v1/orgs/${owner.orgId}/api-tokens`;
  const answers: string[] = [];
  const keep = async (asked: ReturnType<typeof get>) => answers.push((await asked).body);

  const issued = await post(tokens, { name: 'one' }, { ...owner.headers, 'idempotency-key': 'issue' });
  const { plaintext_token, refresh_token_plaintext, token } = issued.json();
  const workspace = `/v1/orgs/${owner.orgId}/workspaces/${owner.workspaceId}`;
  const { app_id } = (await post(`${workspace}/apps`, { name: 'an app' }, owner.headers)).json();
  const ofApp = await issueToken(app, owner, { app_id });
  const headers = { authorization: `Bearer ${plaintext_token}` };

  await keep(get('/v1/auth/me', headers));
  await keep(get(`${workspace}?token=${plaintext_token}`, ofApp.headers));
  await keep(get(`/v1/orgs/${owner.orgId}/workspaces/none`, headers));
  await keep(graphql('{ me { id } nonsense }', { token: plaintext_token }, headers));
  await keep(graphql('query ($t: Int) { me(t: $t) { id } }', { t: refresh_token_plaintext }, headers));
  await keep(post(`${tokens}/refresh`, { refresh_token: refresh_token_plaintext, grace_period_seconds: 'x' }));
  await keep(post(`${tokens}/refresh`, { refresh_token: [refresh_token_plaintext] }));
  await keep(post(`${tokens}/refresh`, { refresh_token: plaintext_token }));
  const refreshed = await post(`${tokens}/refresh`, { refresh_token: refresh_token_plaintext }, headers);
  const next = refreshed.json();
  await app.database.pool.query(`update api_tokens set rotated_at = rotated_at - interval '61 s' where id = $1`, [
    token.token_id,
  ]);
  await app.database.pool.query(`update api_tokens set expires_at = now() + interval '3 days' where id = $1`, [
    ofApp.id,
  ]);
  await app.services.apiTokenNotices.send();
  await keep(post(`${tokens}/refresh`, { refresh_token: refresh_token_plaintext }));
  const socket = await openAcknowledged(app.url, ofApp.headers.authorization);
  socket.send({ id: '1', type: 'subscribe', payload: { query: '{ organizations { totalCount } }' } });
  await socket.next(({ id }) => id === '1');
  socket.close();
  await keep(get(tokens, owner.headers));
  await keep(get(`${tokens}/admin`, owner.headers));
  await keep(get(`/v1/orgs/${owner.orgId}/apps/${app_id}/tokens`, owner.headers));
  await keep(remove(`${tokens}/admin/${ofApp.id}`, owner.headers));
  await app.jobsDone();
  await app.services.activity.flush();
  await app.services.tokenUses.flush();

  const plaintexts: string[] = [
    plaintext_token,
    refresh_token_plaintext,
    ofApp.plaintext_token,
    ofApp.refresh_token_plaintext,
    next.plaintext_token,
    next.refresh_token_plaintext,
  ];
  const stored = await everything();
  const places = { log, stored, answers, mails: app.mails.map((mail) => JSON.stringify(mail)) };
  expect(log.length).toBeGreaterThan(5);
  expect(stored.length).toBeGreaterThan(20);
  expect(app.mails.length).toBeGreaterThan(0);
  for (const [place, texts] of Object.entries(places)) {
    // the 43 characters in the middle are the secret: parts of it would be as bad
    const found = plaintexts.filter((plaintext) => texts.some((text) => text.includes(plaintext.slice(13, 40))));
    expect([place, found]).toEqual([place, []]);
  }
});
