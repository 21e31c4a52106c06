import { type Role, roles } from '../../src/kernel/roles.ts';
import type { TestApp } from './app.ts';
import { addRows, type ListRoute } from './lists.ts';
import { routeOf } from './operations.ts';
import { type Account, addToWorkspace, createUser } from './person.ts';
import { cloneRows, inTransaction } from './rows.ts';
import { issueToken } from './tokens.ts';
import type { World } from './world.ts';

/** Somebody who looks at the world: the same world, but its owner's place is taken by them. */
export interface Looker {
  title: string;
  world: World;
  /** A token knows one organization, and finds no other in a list. */
  isToken: boolean;
}

/** Rows of each list that everybody can see. */
const SEEDED = 25;

/** A user with a role in the organization and another, or none, in its workspace. */
async function newcomer(app: TestApp, world: World, inOrganization: Role, inWorkspace: Role | null): Promise<Account> {
  const owner = world.accounts.owner;
  const username = `${world.marker}-${inOrganization}-${inWorkspace ?? 'outside'}`;
  const somebody = await createUser(app, owner, { username, role: inOrganization });
  if (inWorkspace) await addToWorkspace(app, owner, somebody.userId, inWorkspace);
  return somebody;
}

const seenBy = (world: World, title: string, account: Account, isToken = false): Looker => ({
  title,
  isToken,
  world: {
    ...world,
    accounts: { ...world.accounts, owner: account },
    as: (role) => ({ authorization: `Bearer ${(role === 'owner' ? account : world.accounts[role]).accessToken}` }),
  },
});

/**
 * Everybody who may look differently: each role, roles that differ between organization and workspace, and API tokens,
 * with and without restrictions. All of them see twenty rows of each list that they may see at all.
 */
export async function lookersAt(app: TestApp, world: World, lists: readonly ListRoute[]): Promise<Looker[]> {
  for (const list of lists) await addRows(app, world, list, SEEDED);
  const people: [string, Account][] = [
    ...roles.map((role): [string, Account] => [role, world.accounts[role]]),
    ['viewer with a role in the workspace', await newcomer(app, world, 'viewer', 'editor')],
    ['admin in no workspace', await newcomer(app, world, 'admin', null)],
  ];
  const lookers = people.map(([title, account]) => seenBy(world, title, account));
  for (const looker of lookers) await belongToMany(app, looker, lists);
  const { owner } = world.accounts;
  const maker = { orgId: world.ids.org_id!, headers: world.as('owner') };
  const { rows } = await app.database.pool.query<{ id: string }>(
    'select id from workspaces where org_id = $1 order by id desc limit 40',
    [world.ids.org_id],
  );
  const workspace_ids = [...new Set([world.ids.workspace_id!, ...rows.map(({ id }) => id)])];
  for (const [title, restrictions] of [
    ['API token', {}],
    ['API token of some workspaces', { workspace_ids }],
  ] as const) {
    const { plaintext_token } = await issueToken(app, maker, { scopes: ['read'], ...restrictions });
    lookers.push(seenBy(world, title, { ...owner, accessToken: plaintext_token }, true));
  }
  return lookers;
}

/** Memberships in twenty more organizations and workspaces, and tokens of one's own. */
async function belongToMany(app: TestApp, { world }: Looker, lists: readonly ListRoute[]): Promise<void> {
  const { userId } = world.accounts.owner;
  const organizations = lists.find(({ operation }) => routeOf(operation) === 'GET /v1/orgs');
  if (organizations) await addRows(app, world, organizations, SEEDED);
  await inTransaction(app.database.pool, async (db) => {
    const { rows } = await db.query('select 1 from workspace_members where workspace_id = $1 and user_id = $2', [
      world.ids.workspace_id,
      userId,
    ]);
    if (rows.length === 0) return;
    const where = 'workspace_id = $1 and user_id = $2';
    const values = [world.ids.workspace_id, userId];
    await cloneRows(db, 'workspace_members', SEEDED, { where, values, fresh: ['workspace_id'] });
  });
  const tokens = lists.find(({ operation }) => routeOf(operation) === 'GET /v1/orgs/{org_id}/api-tokens');
  if (!tokens) return;
  await issueToken(app, { orgId: world.ids.org_id!, headers: world.as('owner') }, { scopes: ['read'] });
  await addRows(app, world, tokens, SEEDED);
}
