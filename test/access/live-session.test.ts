import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { demandLiveSession } from '../../src/access/live-session.ts';
import type { NewRow } from '../../src/data/tables.ts';
import { type Caller, SOCKET_METHOD } from '../../src/kernel/caller.ts';
import { newId } from '../../src/kernel/ids.ts';
import type { Principal } from '../../src/kernel/principal.ts';
import { systemCaller } from '../../src/kernel/system-caller.ts';
import type { TokenGrant } from '../../src/kernel/token-grant.ts';
import { addUser, type BareDatabase, openBareDatabase } from '../support/bare-database.ts';

let database: BareDatabase;
let userId: string;
beforeAll(async () => {
  database = await openBareDatabase();
  ({ id: userId } = await addUser(database));
});
afterAll(() => database.close());

const actorWith = (given: Pick<Principal, 'type' | 'token'> & { sessionId?: string }): Caller => ({
  request: systemCaller('test').request,
  principal: { userId, username: 'u', isPlatformAdmin: false, isVerified: true, orgId: 'org_1', ...given } as Principal,
});

async function demandOf(session: Partial<NewRow<'sessions'>> | null): Promise<void> {
  const sessionId = newId('session');
  const expiresAt = new Date(Date.now() + 600_000);
  if (session) await database.add('sessions', { id: sessionId, userId, expiresAt, ...session });
  await demandLiveSession(database.sql, actorWith({ type: 'user', token: null, sessionId }));
}

describe('a change that would outlive the session', () => {
  const tooLate = { code: 'AUTHENTICATION_FAILED' };

  it('is made while the session lives', async () => {
    expect(await demandOf({})).toBeUndefined();
  });

  it('is refused once the session was ended, or is gone', async () => {
    await expect(demandOf({ revokedAt: new Date(0) })).rejects.toMatchObject(tooLate);
    await expect(demandOf(null)).rejects.toMatchObject(tooLate);
  });

  it('is made by a token, which has no session', async () => {
    const token = { id: 'tok_1' } as TokenGrant;
    expect(await demandLiveSession(database.sql, actorWith({ type: 'api_token', token }))).toBeUndefined();
  });
});

it('operations of a socket are recorded with a method of their own', () => {
  expect(SOCKET_METHOD).toBe('WS');
});
