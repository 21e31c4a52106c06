import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { caller, changesOf, colleague, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { waitFor } from '../../support/wait.ts';
import { newSecret, type Secret, secretsOf, VALUE, type Versions } from './new-secret.ts';

let app: TestApp;
const lines: string[] = [];
beforeAll(async () => {
  app = await startTestApp({ logger: pino({ level: 'trace' }, { write: (line: string) => lines.push(line) }) });
});
afterAll(() => app.close());

const MASKED = { user: '********', password: '********' };

test('the history shows values to those who may reveal, as one counted reveal, and masked ones to others', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id } = await newSecret(ann);
  await ann.call('POST', `${url}/rotate`, { value: { nested: { token: 'x' }, n: 1 } });
  const valuesOf = async (who: typeof ann) =>
    (await who.call<Versions>('GET', `${url}/versions`)).body.versions.map(({ value }) => value);
  expect(await valuesOf(ann)).toEqual([{ nested: { token: 'x' }, n: 1 }, VALUE]);
  const member = await colleague(app, ann, 'member');
  expect(await valuesOf(member)).toEqual([{ nested: '********', n: '********' }, MASKED]);
  expect((await ann.call<Secret>('GET', url)).body.access_count).toBe(1);
  expect((await changesOf(app, secret_id)).slice(-1)).toMatchObject([
    { action: 'reveal', userId: ann.userId, orgId: ann.orgId, metadata: { version: 2, history: true } },
  ]);
  await app.services.activity.flush();
  const reads = { resourceId: secret_id, userId: member.userId };
  expect(await app.database.prisma.activity.findMany({ where: reads, select: { action: true } })).toEqual([
    { action: 'read' },
  ]);
});

const DEMAND = `mutation ($orgId: ID!, $input: UpdateSignInPolicyInput!) {
  updateSignInPolicy(orgId: $orgId, input: $input) { requireRevealReason }
}`;
const demandReasons = (who: Person, requireRevealReason: boolean) =>
  who.ask(DEMAND, { orgId: who.orgId, input: { requireRevealReason } });

test('an organization that wants to know why shows no value without a reason, and counts none', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id, name } = await newSecret(ann);
  const member = await colleague(app, ann, 'member');
  expect((await demandReasons(ann, true)).data).toEqual({ updateSignInPolicy: { requireRevealReason: true } });
  type Refused = { details: { errors: { location: string[]; message: string }[] } };
  const { plaintext_token } = await issueToken(app, ann, { permissions: ['secret:read', 'secret:reveal'] });
  const program = caller(app, { ...ann, accessToken: plaintext_token });
  const ways = [`${url}?include_value=true`, `${secretsOf(ann)}/by-name/${name}?include_value=true`, `${url}/versions`];
  for (const who of [ann, program])
    for (const way of ways) {
      const blank = `${way}${way.includes('?') ? '&' : '?'}reason=%20`;
      for (const asked of [way, blank]) {
        const { status, body } = await who.call<Refused>('GET', asked);
        expect([asked, status]).toEqual([asked, 422]);
        expect(JSON.stringify(body)).toContain('"reason"');
        expect(JSON.stringify(body)).not.toContain(VALUE.password);
      }
    }
  const place = `orgId: "${ann.orgId}", id: "${secret_id}"`;
  const { data, errors } = await ann.ask<{ secret: object } | null>(
    `{ secret(${place}, includeValue: true) { value } }`,
  );
  expect(data).toBeNull();
  expect(errors).toMatchObject([{ extensions: { code: 'VALIDATION_ERROR' }, path: ['secret'] }]);
  // all that shows no value goes on without one
  expect((await ann.call<Secret>('GET', url)).body.access_count).toBe(0);
  expect((await member.call('GET', `${url}/versions`)).status).toBe(200);
  expect((await member.call('GET', `${url}?include_value=true`)).status).toBe(403);
  expect((await ann.call('GET', `${secretsOf(ann)}/sec_nowhere?include_value=true`)).status).toBe(404);
  const { body } = await ann.call<Secret>('GET', `${url}?include_value=true&reason=Ticket%207`);
  expect([body.value, body.access_count]).toEqual([VALUE, 1]);
  expect((await changesOf(app, secret_id)).filter(({ action }) => action === 'reveal')).toHaveLength(1);
  // another organization is not asked for one, and neither is this one later
  const bob = await register(app, { name: 'bob' });
  const theirs = await newSecret(bob);
  expect((await bob.call('GET', `${theirs.url}?include_value=true`)).status).toBe(200);
  await demandReasons(ann, false);
  expect((await ann.call('GET', `${url}?include_value=true`)).status).toBe(200);
});

test('a reveal is recorded with the reason that was given for it', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id, name } = await newSecret(ann);
  const why = (text: string) => `reason=${encodeURIComponent(text)}`;
  await ann.call('GET', `${url}?include_value=true&${why('Ticket 7')}`);
  await ann.call('GET', `${secretsOf(ann)}/by-name/${name}?include_value=true&${why('Ticket 8')}`);
  await ann.call('GET', `${url}/versions?${why('Ticket 9')}`);
  const place = `orgId: "${ann.orgId}", id: "${secret_id}"`;
  await ann.ask(`{ secret(${place}, includeValue: true, reason: "Ticket 10") { value } }`);
  await ann.call('GET', `${url}?include_value=true`);
  // nothing is revealed: there is no reveal to give a reason for
  await ann.call('GET', `${url}?${why('Ticket 11')}`);
  expect((await ann.call('GET', `${url}?include_value=true&${why('x'.repeat(501))}`)).status).toBe(422);
  const records = (await changesOf(app, secret_id)).filter(({ action }) => action === 'reveal');
  expect(records.map(({ metadata }) => metadata)).toEqual([
    { version: 1, reason: 'Ticket 7' },
    { version: 1, reason: 'Ticket 8' },
    { version: 1, history: true, reason: 'Ticket 9' },
    { version: 1, reason: 'Ticket 10' },
    { version: 1 },
  ]);
});

test('what holds a value is kept by nothing between; neither is any other answer of the API', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url } = await newSecret(ann);
  const paths = [`${url}?include_value=true`, `${url}/versions`, url, '/v1/nowhere', '/graphql?query={me{id}}'];
  // the same routes, spelled in another way
  paths.push(`${url.replace('/v1', '/%761')}?include_value=true`, `http://elsewhere.test${url}?include_value=true`);
  for (const path of paths) {
    const answer = await app.server.inject({ url: path, headers: { authorization: `Bearer ${ann.accessToken}` } });
    expect(answer.headers['cache-control'], path).toBe('no-store');
  }
  const stranger = await app.server.inject({ url });
  expect([stranger.statusCode, stranger.headers['cache-control']]).toEqual([401, 'no-store']);
});

test('a reveal that cannot be recorded shows nothing and is not counted', async () => {
  const ann = await register(app, { name: 'ann' });
  const marker = randomBytes(32).toString('hex');
  const { url } = await newSecret(ann, { value: { marker } });
  const { pool } = app.database;
  await pool.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise 'the audit trail is full'; end $$`,
  );
  await pool.query(
    `create trigger refuse before insert on activity for each row
       when (new.action = 'reveal') execute function refuse()`,
  );
  try {
    const query = `{ secret(orgId: "${ann.orgId}", id: "${url.split('/').at(-1)!}", includeValue: true) { value } }`;
    const answers = [
      await ann.call('GET', `${url}?include_value=true`),
      await ann.call('GET', `${url}/versions`),
      await ann.ask(query),
    ];
    expect(answers).toMatchObject([
      { status: 500, body: { error: 'INTERNAL_SERVER_ERROR' } },
      { status: 500, body: { error: 'INTERNAL_SERVER_ERROR' } },
      { errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }] },
    ]);
    expect(JSON.stringify(answers)).not.toContain(marker);
  } finally {
    // jobs write and read there at the same time: the one of a deadlock that is ended may be this one
    await waitFor(() => pool.query('drop trigger refuse on activity; drop function refuse()'));
  }
  expect(await ann.call<Secret>('GET', url)).toMatchObject({ body: { access_count: 0, last_accessed_at: null } });
  expect((await ann.call<Secret>('GET', `${url}?include_value=true`)).body.value).toEqual({ marker });
});

test('twenty reveals at once are counted and recorded twenty times', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id } = await newSecret(ann);
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => ann.call<Secret>('GET', `${url}?include_value=true`)),
  );
  expect(answers.map(({ body }) => body.value)).toEqual(Array(20).fill(VALUE));
  expect(answers.map(({ body }) => body.access_count as number).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 1),
  );
  const records = await changesOf(app, secret_id);
  expect(records.filter(({ action }) => action === 'reveal')).toHaveLength(20);
});

test('reveals during rotations show whole versions: the value of the version that they name', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url } = await newSecret(ann, { value: { version: 1 } });
  const rotations = (async () => {
    for (let version = 2; version <= 20; version++) await ann.call('POST', `${url}/rotate`, { value: { version } });
  })();
  const seen = await Promise.all(
    Array.from({ length: 40 }, () => ann.call<Secret>('GET', `${url}?include_value=true`)),
  );
  await rotations;
  for (const { status, body } of seen) expect([status, body.value]).toEqual([200, { version: body.vault_version }]);
});

test('a HEAD request and a GraphQL request by GET are reveals like any other', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url, secret_id } = await newSecret(ann);
  const headers = { authorization: `Bearer ${ann.accessToken}` };
  await app.server.inject({ method: 'HEAD', url: `${url}?include_value=true`, headers });
  const query = `{ secret(orgId: "${ann.orgId}", id: "${secret_id}", includeValue: true) { value accessCount } }`;
  const answer = await app.server.inject({ url: `/graphql?query=${encodeURIComponent(query)}`, headers });
  expect(answer.json()).toEqual({ data: { secret: { value: VALUE, accessCount: 2 } } });
});

/** Ciphertexts and wrapped keys that were exchanged behind the service's back. */
const swaps: Record<string, (a: string, b: string) => [string, string[]]> = {
  'the value of another secret': (a, b) => [
    `update secret_versions t set ciphertext = o.ciphertext from secret_versions o
      where (t.secret_id, t.version) = ($1, 2) and (o.secret_id, o.version) = ($2, 2)`,
    [a, b],
  ],
  'the value of another version': (a) => [
    `update secret_versions t set ciphertext = o.ciphertext from secret_versions o
      where (t.secret_id, t.version) = ($1, 2) and (o.secret_id, o.version) = ($1, 1)`,
    [a],
  ],
  'the data key of another secret': (a, b) => [
    'update secrets t set wrapped_key = o.wrapped_key from secrets o where t.id = $1 and o.id = $2',
    [a, b],
  ],
  'the data key and the values of another secret': (a, b) => [
    `with k as (update secrets t set wrapped_key = o.wrapped_key from secrets o where t.id = $1 and o.id = $2)
      update secret_versions t set ciphertext = o.ciphertext from secret_versions o
      where t.secret_id = $1 and o.secret_id = $2 and o.version = t.version`,
    [a, b],
  ],
  'a flipped bit': (a) => [
    `update secret_versions set ciphertext = set_bit(ciphertext, 100, 1 - get_bit(ciphertext, 100))
     where secret_id = $1 and version = 2`,
    [a],
  ],
  'a cut end': (a) => [
    'update secret_versions set ciphertext = substring(ciphertext for 20) where secret_id = $1 and version = 2',
    [a],
  ],
  'a shorter tag': (a) => [
    `update secret_versions set ciphertext = substring(ciphertext for octet_length(ciphertext) - 8)
     where secret_id = $1 and version = 2`,
    [a],
  ],
  'no ciphertext': (a) => ['update secret_versions set ciphertext = null where secret_id = $1 and version = 2', [a]],
  'another organization': (a, b) => [
    'update secrets set org_id = (select org_id from secrets where id = $2) where id = $1',
    [a, b],
  ],
};

test.each(Object.entries(swaps))(
  '%s in the database is told as unreadable and logged, never a wrong value',
  async (title, swap) => {
    const [ann, eve] = [await register(app, { name: 'ann' }), await register(app, { name: 'eve' })];
    const markers = Array.from({ length: 3 }, () => randomBytes(32).toString('hex')) as [string, string, string];
    const [mine, theirs] = [
      await newSecret(ann, { value: { m: markers[0] } }),
      await newSecret(eve, { value: { m: markers[2] } }),
    ];
    await ann.call('POST', `${mine.url}/rotate`, { value: { m: markers[1] } });
    await eve.call('POST', `${theirs.url}/rotate`, { value: { m: markers[2] } });
    await app.database.pool.query(...swap(mine.secret_id, theirs.secret_id));
    lines.length = 0;
    const isMoved = title === 'another organization';
    const reader = isMoved ? eve : ann;
    const url = `${secretsOf(reader)}/${mine.secret_id}`;
    const revealed = await reader.call('GET', `${url}?include_value=true`);
    expect(revealed).toMatchObject({
      status: 409,
      body: {
        error: 'RESOURCE_CONFLICT',
        details: { resource_type: 'secret', resource_id: mine.secret_id, reason: 'secret_unreadable' },
      },
    });
    const faults = lines.filter((line) => line.includes('a secret cannot be decrypted'));
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(`of the secret '${mine.secret_id}'`);
    // the versions that open are shown
    const history = await reader.call<Versions>('GET', `${url}/versions`);
    expect([history.status, history.body.versions.map(({ version }) => version)]).toEqual([200, [2, 1]]);
    const states = await reader.ask<{ secretVersions: { versions: { state: string; value: unknown }[] } }>(
      `{ secretVersions(orgId: "${reader.orgId}", id: "${mine.secret_id}") { versions { state value } } }`,
    );
    const { versions } = states.data.secretVersions;
    const [current, first] = versions;
    expect(current).toEqual({ state: title === 'no ciphertext' ? 'DESTROYED' : 'UNREADABLE', value: null });
    const isWhole = first!.state === 'READABLE';
    expect(first!.value).toEqual(isWhole ? { m: markers[0] } : null);
    expect(history.body.versions.map(({ value }) => value)).toEqual(versions.map(({ value }) => value));
    const seen = JSON.stringify([revealed, versions[0]]) + lines.join('');
    for (const marker of markers) expect(seen).not.toContain(marker);
    // a new value heals it, where its data key opens
    const rotated = await reader.call('POST', `${url}/rotate`, { value: { m: 'new' } });
    if (isWhole || title === 'no ciphertext')
      expect((await reader.call<Secret>('GET', `${url}?include_value=true`)).body.value).toEqual({ m: 'new' });
    else if (rotated.status !== 200)
      expect(rotated).toMatchObject({ status: 409, body: { details: { reason: 'secret_unreadable' } } });
  },
);
