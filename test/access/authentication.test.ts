import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AccessTokens } from '../../src/access/access-tokens.ts';
import { formatToken } from '../../src/access/api-token-format.ts';
import { Authentication, credentialOf } from '../../src/access/authentication.ts';
import { OAuthTokens } from '../../src/access/oauth-tokens.ts';
import { tokenHash } from '../../src/access/random-token.ts';
import { SigningKeys } from '../../src/access/signing-keys.ts';
import { TokenUses } from '../../src/access/token-uses.ts';
import type { Sql } from '../../src/data/sql.ts';
import type { NewRow } from '../../src/data/tables.ts';
import { newId } from '../../src/kernel/ids.ts';
import type { TokenPrincipal } from '../../src/kernel/principal.ts';
import {
  addOrganization,
  addUser,
  addWorkspace,
  type BareDatabase,
  openBareDatabase,
} from '../support/bare-database.ts';
import { hurryTimers, stopAges } from '../support/passing-time.ts';
import { waitFor, waitUntil } from '../support/wait.ts';

const keysDir = mkdtempSync(path.join(tmpdir(), 'keys-'));
let database: BareDatabase;
let tokens: AccessTokens;
let uses: TokenUses;
let authentication: Authentication;
beforeAll(async () => {
  database = await openBareDatabase();
  tokens = new AccessTokens(await SigningKeys.open(keysDir), 60);
});
beforeEach(() => {
  // what was found is kept for less than a second, and a machine may take longer between two questions
  stopAges();
  uses = new TokenUses(database.sql, (error) => {
    throw error;
  });
  authentication = new Authentication(tokens, new OAuthTokens([], () => ''), uses, database.sql);
});
afterEach(() => uses.flush());
afterAll(async () => {
  await database.close();
  rmSync(keysDir, { recursive: true });
});

const later = (seconds: number) => new Date(Date.now() + seconds * 1_000);

/** A user who has signed in, with an access token. */
async function signIn(given: Partial<NewRow<'users'>> = {}, session: Partial<NewRow<'sessions'>> = {}) {
  const { id: userId, username } = await addUser(database, given);
  const sessionId = newId('session');
  await database.add('sessions', { id: sessionId, userId, expiresAt: later(600), ...session });
  const token = await tokens.issue({ userId, orgId: 'org_1', sessionId });
  return { userId, username, sessionId, token, credential: credentialOf(`Bearer ${token}`)! };
}

/** An API token of a new user in a new organization. */
async function makeToken(given: Partial<NewRow<'api_tokens'>> = {}) {
  const { id: userId, username } = await addUser(database);
  const orgId = await addOrganization(database, { [userId]: 'admin' });
  const token = formatToken(given.tokenType === 'app' ? 'app' : 'pat');
  const id = newId('api_token');
  await database.add('api_tokens', {
    id,
    orgId,
    familyId: id,
    tokenType: 'pat',
    ownerType: 'user',
    ownerId: userId,
    createdByUserId: userId,
    name: 'n',
    prefix: token.slice(0, 12),
    tokenHash: tokenHash(token),
    refreshHash: id,
    ...given,
  });
  return { id, userId, username, orgId, token, credential: credentialOf(token)! };
}

describe('a credential', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bearer   abc', 'abc'],
    ['BEARER abc ', 'abc'],
    ['abc', 'abc'],
    ['  a.b~c+d/e=f-g_h  ', 'a.b~c+d/e=f-g_h'],
    ['bearer', 'bearer'],
  ])('%j is %j', (header, token) => {
    expect(credentialOf(header)).toEqual({ token, hash: tokenHash(token) });
  });

  it.each([undefined, '', '  ', 'Basic abc', 'Bearer a b', 'Bearer a,b', 'abc def'])('%j is none', (header) => {
    expect(credentialOf(header)).toBeNull();
  });
});

describe('an access token', () => {
  it('is that of a live session', async () => {
    const { credential, ...known } = await signIn({ isPlatformAdmin: true, isVerified: false });
    expect(await authentication.authenticate(credential)).toEqual({
      type: 'user',
      userId: known.userId,
      username: known.username,
      isPlatformAdmin: true,
      isVerified: false,
      sessionId: known.sessionId,
      orgId: 'org_1',
      token: null,
      vouchedBy: null,
      provesFactor: false,
      factorAt: null,
      brokenGlass: null,
      shutOutOf: [],
    });
    expect(await authentication.isSigned(credential)).toBe(true);
  });

  it.each<[string, Partial<NewRow<'users'>>, Partial<NewRow<'sessions'>>]>([
    ['that was ended', {}, { revokedAt: new Date(0) }],
    ['that has expired', {}, { expiresAt: new Date(0) }],
    ['of an inactive user', { isActive: false }, {}],
  ])('of a session %s is none, although it is signed', async (_title, user, session) => {
    const { credential } = await signIn(user, session);
    expect(await authentication.authenticate(credential)).toBeNull();
    expect(await authentication.isSigned(credential)).toBe(true);
  });

  it('of a session of somebody else is none', async () => {
    const { sessionId } = await signIn();
    const token = await tokens.issue({ userId: 'usr_1', orgId: null, sessionId });
    expect(await authentication.authenticate(credentialOf(token))).toBeNull();
  });

  it('is none without a signature of this service', async () => {
    const { token } = await signIn();
    const [head, body, signature] = token.split('.') as [string, string, string];
    const forged = `${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`;
    for (const other of ['x', forged, `${head}.${body}.`, token.replace('.', '..')]) {
      expect(await authentication.authenticate(credentialOf(other))).toBeNull();
      expect(await authentication.isSigned(credentialOf(other)!)).toBe(false);
    }
    expect(await authentication.authenticate(null)).toBeNull();
  });

  it('ends on this node at once', async () => {
    const { credential, sessionId } = await signIn();
    const principal = await authentication.authenticate(credential);
    await database.pool.query(`update sessions set revoked_at = now() where id = $1`, [sessionId]);
    authentication.sessionChanged(sessionId);
    expect(await authentication.authenticate(credential)).toBeNull();
    expect(await authentication.renew(principal!)).toBeNull();
    expect(await authentication.lives(principal!)).toBe(false);
    expect(await authentication.livesStill(principal!)).toBe(false);
  });

  it('ends on this node at once, also where it was known to live', async () => {
    const all = [await signIn(), await signIn(), await signIn()];
    const principals = await Promise.all(all.map(async ({ credential }) => authentication.authenticate(credential)));
    const ids = all.map(({ sessionId }) => sessionId);
    const live = () => Promise.all(principals.map(async (principal) => authentication.lives(principal!)));
    expect(await authentication.ended(ids)).toEqual(new Set());
    await database.pool.query(`update sessions set revoked_at = now() where id = any($1)`, [ids]);
    expect(await live()).toEqual([true, true, true]);
    authentication.sessionChanged(ids[0]!);
    expect(await live()).toEqual([false, true, true]);
    authentication.sessionsChanged();
    expect(await live()).toEqual([false, false, false]);
  });

  it('of a session that is found to have ended is refused from then on', async () => {
    const { credential, sessionId } = await signIn();
    const principal = (await authentication.authenticate(credential))!;
    expect(await authentication.livesStill(principal)).toBe(true);
    await database.pool.query(`update sessions set revoked_at = now() where id = $1`, [sessionId]);
    expect(await authentication.livesStill(principal)).toBe(false);
    expect(await authentication.authenticate(credential)).toBeNull();
    expect(await authentication.lives(principal)).toBe(false);
  });

  it('may hold what API tokens begin with', async () => {
    // these letters are written as "pat_" in one of the three places where they can begin
    const all = await Promise.all(
      ['', 'x', 'xx'].map((start) => tokens.issue({ userId: 'usr_1', orgId: null, sessionId: `${start}\u396b\u007f` })),
    );
    const found = all.find((token) => token.includes('pat_'));
    expect(await authentication.isSigned(credentialOf(found)!)).toBe(true);
  });

  it('works in the organization that it names, whatever another one of its session names', async () => {
    const { userId, sessionId, credential } = await signIn();
    const homeless = credentialOf(await tokens.issue({ userId, orgId: null, sessionId }))!;
    const found = [await authentication.authenticate(credential), await authentication.authenticate(homeless)];
    expect(found.map((principal) => principal?.orgId)).toEqual(['org_1', null]);
  });

  it('of many sessions is looked up together', async () => {
    const all = await Promise.all([signIn(), signIn({ isActive: false }), signIn()]);
    const found = await Promise.all(all.map(async ({ credential }) => authentication.authenticate(credential)));
    expect(found.map((principal) => principal?.userId)).toEqual([all[0]!.userId, undefined, all[2]!.userId]);
  });
});

describe('a principal that was found', () => {
  it('is renewed in its organization, and lives', async () => {
    const { credential } = await signIn();
    const principal = (await authentication.authenticate(credential))!;
    expect(await authentication.renew(principal)).toEqual(principal);
    expect(authentication.lives(principal)).toBe(true);
    expect(await authentication.livesStill(principal)).toBe(true);
    expect(await authentication.renew({ ...principal, userId: 'usr_1' })).toBeNull();
    authentication.sessionsChanged();
    expect(await authentication.lives({ ...principal, userId: 'usr_1' })).toBe(false);
  });

  it('is known to live after a look at many', async () => {
    const [living, ended] = [await signIn(), await signIn({}, { revokedAt: new Date(0) })];
    expect(await authentication.ended([living.sessionId, ended.sessionId, 'ses_1'])).toEqual(
      new Set([ended.sessionId, 'ses_1']),
    );
    const known = {
      ...living,
      type: 'user',
      isPlatformAdmin: false,
      isVerified: true,
      orgId: null,
      token: null,
    } as const;
    expect(authentication.lives(known)).toBe(true);
    expect(await authentication.lives({ ...known, ...ended, token: null })).toBe(false);
    expect(await authentication.ended([])).toEqual(new Set());
  });
});

describe('an API token', () => {
  it('is that of its user, with what it grants', async () => {
    const { credential, id, userId, username, orgId } = await makeToken({
      scopes: ['read'],
      permissions: ['thread:create'],
      namespaceIds: ['ns_1'],
      environmentIds: ['env_1'],
      workspaceIds: ['ws_1'],
      endpointPaths: ['/v1/orgs', 'no path'],
      rateLimitRps: 5,
      rateLimitBurst: 9,
    });
    const principal = (await authentication.authenticate(credential)) as TokenPrincipal;
    expect(principal).toMatchObject({
      type: 'api_token',
      userId,
      username,
      orgId,
      isVerified: true,
      isPlatformAdmin: false,
      token: {
        id,
        type: 'pat',
        familyId: id,
        hash: credential.hash,
        orgId,
        appId: null,
        root: null,
        workspaceIds: ['ws_1'],
        namespaceIds: ['ns_1'],
        environmentIds: ['env_1'],
        rateLimitRps: 5,
        rateLimitBurst: 9,
        endpoints: [{ segments: ['v1', 'orgs'], isOpen: true }],
      },
    });
    expect(principal.token.permissions.has('thread:create')).toBe(true);
    expect(principal.token.permissions.has('thread:update')).toBe(false);
    expect(principal.token.permissions.has('secret:read')).toBe(true);
    expect(await authentication.isSigned(credential)).toBe(false);
    expect(await authentication.renew(principal)).toEqual(principal);
    expect(await authentication.lives(principal)).toBe(true);
    expect(await authentication.livesStill(principal)).toBe(true);
    await uses.flush();
    const { rows } = await database.pool.query(
      'select last_used_at is not null as used from api_tokens where id = $1',
      [id],
    );
    expect(rows).toEqual([{ used: true }]);
  });

  it('of an app is for its workspace', async () => {
    const { credential } = await makeToken({ tokenType: 'app', workspaceId: 'ws_9', workspaceIds: ['ws_1'] });
    const principal = (await authentication.authenticate(credential)) as TokenPrincipal;
    expect(principal).toMatchObject({
      type: 'app_token',
      token: { type: 'app', workspaceIds: ['ws_9'], endpoints: null },
    });
  });

  it('made by a token has the limits of the first of the line', async () => {
    const root = await makeToken({ rateLimitRps: 3, rateLimitBurst: 4 });
    const limited = await makeToken({ rootFamilyId: root.id });
    const orphan = await makeToken({ rootFamilyId: 'tok_1' });
    const rootOf = async ({ credential }: typeof root) =>
      ((await authentication.authenticate(credential)) as TokenPrincipal).token.root;
    expect(await rootOf(limited)).toEqual({ familyId: root.id, rateLimitRps: 3, rateLimitBurst: 4 });
    expect(await rootOf(orphan)).toEqual({ familyId: 'tok_1', rateLimitRps: null, rateLimitBurst: null });
  });

  it.each<[string, Partial<NewRow<'api_tokens'>>, boolean]>([
    ['that expires later', { expiresAt: later(600) }, true],
    ['that is revoked later', { revokedAt: later(600), revokedReason: 'rotated' }, true],
    ['that has expired', { expiresAt: new Date(0) }, false],
    ['that was revoked', { revokedAt: new Date(0), revokedReason: 'revoked', expiresAt: later(600) }, false],
  ])('%s', async (_title, given, isAlive) => {
    const { credential } = await makeToken(given);
    expect((await authentication.authenticate(credential)) !== null).toBe(isAlive);
  });

  it('is none once its user is inactive or its organization deleted', async () => {
    const [first, second] = [await makeToken(), await makeToken()];
    await database.pool.query('update users set is_active = false where id = $1', [first.userId]);
    await database.pool.query('update organizations set deleted_at = now() where id = $1', [second.orgId]);
    for (const { credential } of [first, second]) expect(await authentication.authenticate(credential)).toBeNull();
  });

  it('is none where it is unknown, mistyped or a refresh token', async () => {
    const { token } = await makeToken();
    const refresh = formatToken('rft');
    for (const other of [formatToken('pat'), `${token.slice(0, -1)}!`, `${token}x`, refresh])
      expect(await authentication.authenticate(credentialOf(other))).toBeNull();
  });

  it('that is mistyped is none without a look at the database', async () => {
    const sql = { read: () => Promise.reject(new Error('lost')) } as unknown as Sql;
    const failing = new Authentication(tokens, new OAuthTokens([], () => ''), uses, sql);
    const { token, credential } = await makeToken();
    const mistyped = `${token.slice(0, 20)}${token[20] === 'a' ? 'b' : 'a'}${token.slice(21)}`;
    expect(await failing.authenticate(credentialOf(mistyped))).toBeNull();
    await expect(failing.authenticate(credential)).rejects.toThrow('lost');
  });

  it('that was revoked is refused on this node at once', async () => {
    const made = [await makeToken(), await makeToken(), await makeToken()];
    const find = () => Promise.all(made.map(async ({ credential }) => authentication.authenticate(credential)));
    expect((await find()).every(Boolean)).toBe(true);
    await database.pool.query(
      `update api_tokens set revoked_at = now(), revoked_reason = 'revoked' where id = any($1)`,
      [made.map(({ id }) => id)],
    );
    authentication.apiTokensRevoked([made[0]!.credential.hash]);
    await authentication.readTokensAgain([made[1]!.credential.hash]);
    expect((await find()).slice(0, 2)).toEqual([null, null]);
    authentication.appDeleted();
    expect(await find()).toEqual([null, null, null]);
  });
});

describe('an API token that is known', () => {
  it('ends when its time has come', async () => {
    // two minutes by the clock of the database, which goes on; those of the cache do not
    const clocks = [stopAges(), hurryTimers(1)];
    const { credential, principal } = await waitUntil(async () => {
      const { credential, id } = await makeToken({ expiresAt: later(120) });
      const principal = (await authentication.authenticate(credential))!;
      await database.pool.query(`update api_tokens set expires_at = now() + interval '500 ms' where id = $1`, [id]);
      authentication.sessionsChanged();
      return (await authentication.authenticate(credential)) && { credential, principal };
    });
    expect(principal.type).toBe('api_token');
    for (const clock of clocks) clock.pass(600);
    expect(await authentication.authenticate(credential)).toBeNull();
    expect(await authentication.lives(principal)).toBe(false);
    expect(await authentication.livesStill(principal)).toBe(false);
  });

  it('is what it was until it is read again, and then what it is', async () => {
    const { credential, id } = await makeToken({ permissions: ['thread:create'] });
    const permissions = async () =>
      [...((await authentication.authenticate(credential)) as TokenPrincipal).token.permissions].sort();
    expect(await permissions()).toEqual(['thread:create']);
    await database.pool.query(`update api_tokens set permissions = '{secret:read}' where id = $1`, [id]);
    await authentication.readTokensAgain([credential.hash]);
    expect(await permissions()).toEqual(['secret:read']);
  });
});

describe('a token for namespaces and environments', () => {
  it('is for the workspaces of these, in its own organization', async () => {
    const token = await makeToken();
    const { orgId } = token;
    const elsewhere = await addOrganization(database);
    const [first, second] = [await addWorkspace(database, orgId), await addWorkspace(database, orgId)];
    const foreign = await addWorkspace(database, elsewhere);
    const namespaces = [newId('namespace'), newId('namespace')] as const;
    const environments = [newId('environment'), newId('environment')] as const;
    const slug = 'default';
    await database.add('namespaces', { id: namespaces[0], orgId, workspaceId: first, name: 'n', slug });
    await database.add('namespaces', { id: namespaces[1], orgId: elsewhere, workspaceId: foreign, name: 'n', slug });
    await database.add('environments', { id: environments[0], orgId, workspaceId: second, name: 'e', slug });
    await database.add('environments', {
      id: environments[1],
      orgId: elsewhere,
      workspaceId: foreign,
      name: 'e',
      slug,
    });
    const impliedBy = async (lists: Pick<NewRow<'api_tokens'>, 'namespaceIds' | 'environmentIds' | 'workspaceIds'>) => {
      const { namespaceIds = [], environmentIds = [], workspaceIds = [] } = lists;
      await database.pool.query(
        'update api_tokens set namespace_ids = $2, environment_ids = $3, workspace_ids = $4 where id = $1',
        [token.id, namespaceIds, environmentIds, workspaceIds],
      );
      authentication.appDeleted();
      const principal = (await authentication.authenticate(token.credential)) as TokenPrincipal;
      return principal.token.impliedWorkspaceIds && new Set(principal.token.impliedWorkspaceIds);
    };
    expect(await impliedBy({})).toBeNull();
    expect(await impliedBy({ namespaceIds: [...namespaces] })).toEqual(new Set([first]));
    expect(await impliedBy({ environmentIds: [...environments] })).toEqual(new Set([second]));
    const both = { namespaceIds: [namespaces[0]], environmentIds: [environments[0]] };
    expect(await impliedBy(both)).toEqual(new Set([first, second]));
    expect(await impliedBy({ namespaceIds: ['ns_1'] })).toEqual(new Set());
    expect(await impliedBy({ ...both, workspaceIds: [second] })).toBeNull();
  });
});

describe('a credential that is trusted', () => {
  it('is trusted for ten minutes, and for ten more when it is used in the second half of these', async () => {
    const clocks = [stopAges(), hurryTimers(1)];
    const pass = (minutes: number) => {
      for (const clock of clocks) clock.pass(minutes * 60_000);
    };
    const { credential } = await signIn();
    const [early, late] = [await signIn(), await signIn()];
    const all = [credential, early.credential, late.credential];
    const trusted = () => all.map((each) => authentication.isTrusted(each));
    for (const each of all) await authentication.authenticate(each);
    pass(4.9);
    await authentication.authenticate(early.credential);
    pass(0.2);
    await authentication.authenticate(late.credential);
    pass(4.8);
    expect(trusted()).toEqual([true, true, true]);
    pass(0.2);
    expect(trusted()).toEqual([false, false, true]);
    pass(5.1);
    expect(trusted()).toEqual([false, false, false]);
  });

  it('is being looked up, as long as anybody waits for an answer', async () => {
    const { credential, sessionId } = await signIn();
    const answers: (() => void)[] = [];
    const sql = { read: () => new Promise((resolve) => answers.push(() => resolve([]))) } as unknown as Sql;
    const waiting = new Authentication(tokens, new OAuthTokens([], () => ''), uses, sql);
    const first = waiting.authenticate(credential);
    await waitFor(() => expect(answers).toHaveLength(1));
    // the second one asks anew
    waiting.sessionChanged(sessionId);
    const second = waiting.authenticate(credential);
    await waitFor(() => expect(answers).toHaveLength(2));
    answers[0]!();
    expect(await first).toBeNull();
    expect(waiting.isTrusted(credential)).toBe(true);
    answers[1]!();
    expect(await second).toBeNull();
    expect(waiting.isTrusted(credential)).toBe(false);
  });

  it('is no longer being looked up when the look-up fails', async () => {
    const { credential } = await signIn();
    const sql = { read: () => Promise.reject(new Error('lost')) } as unknown as Sql;
    const failing = new Authentication(tokens, new OAuthTokens([], () => ''), uses, sql);
    await expect(failing.authenticate(credential)).rejects.toThrow('lost');
    expect(failing.isTrusted(credential)).toBe(false);
  });

  it('was valid recently, or is being looked up', async () => {
    const { credential, sessionId } = await signIn();
    expect(authentication.isTrusted(credential)).toBe(false);
    const [first, second] = [authentication.authenticate(credential), authentication.authenticate(credential)];
    expect(authentication.isTrusted(credential)).toBe(true);
    await Promise.all([first, second]);
    expect(authentication.isTrusted(credential)).toBe(true);
    await database.pool.query(`update sessions set revoked_at = now() where id = $1`, [sessionId]);
    authentication.sessionChanged(sessionId);
    await authentication.authenticate(credential);
    expect(authentication.isTrusted(credential)).toBe(false);
  });
});
