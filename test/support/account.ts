import { randomBytes } from 'node:crypto';
import type { TestApp } from './app.ts';

/** An account that was registered through the front door, with the organization and workspace that it got. */
export interface TestAccount {
  userId: string;
  username: string;
  email: string;
  password: string;
  orgId: string;
  workspaceId: string;
  accessToken: string;
  refreshToken: string;
  headers: { authorization: string };
}

/** Registers an account; the names are random unless given. */
export async function registerAccount(
  app: TestApp,
  given: { username?: string; email?: string; password?: string } = {},
): Promise<TestAccount> {
  const username = given.username ?? `user-${randomBytes(6).toString('hex')}`;
  const email = given.email ?? `${username}@example.test`;
  const password = given.password ?? `the password of ${username}`;
  const answer = await app.server.inject({
    method: 'POST',
    url: '/v1/auth/register',
    payload: { email, username, password },
  });
  if (answer.statusCode !== 201) throw new Error(`registering ${username}: ${answer.statusCode} ${answer.body}`);
  const body = answer.json<{
    access_token: string;
    refresh_token: string;
    user: { user_id: string; default_workspace_id: string; settings: { current_org_id: string } };
  }>();
  return {
    userId: body.user.user_id,
    username,
    email,
    password,
    orgId: body.user.settings.current_org_id,
    workspaceId: body.user.default_workspace_id,
    accessToken: body.access_token,
    refreshToken: body.refresh_token,
    headers: { authorization: `Bearer ${body.access_token}` },
  };
}
