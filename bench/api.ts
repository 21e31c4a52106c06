import type { ServerProcess } from './server-process.ts';

/** Who is measured: the first user of an organization of its own. */
export interface Account {
  token: string;
  orgId: string;
  userId: string;
  workspaceId: string;
}

/** The body of a request that must succeed. */
export async function call<Body>(
  server: Pick<ServerProcess, 'url'>,
  token: string | null,
  method: string,
  path: string,
  body?: object,
): Promise<Body> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as Body;
}

export async function register(server: Pick<ServerProcess, 'url'>): Promise<Account> {
  const name = `bench${Date.now().toString(36)}`;
  const { access_token, user } = await call<{
    access_token: string;
    user: { user_id: string; default_workspace_id: string; settings: { current_org_id: string } };
  }>(server, null, 'POST', '/v1/auth/register', {
    email: `${name}@example.test`,
    username: name,
    password: `secret of ${name}`,
  });
  return {
    token: access_token,
    orgId: user.settings.current_org_id,
    userId: user.user_id,
    workspaceId: user.default_workspace_id,
  };
}

/**
 * Demands that all servers answer a request with the very same bytes.
 * @returns the size of the answer
 * @throws Error with the place where the first one differs
 */
export async function demandSameAnswer(
  servers: readonly ServerProcess[],
  path: string,
  token: string,
): Promise<number> {
  const answers = await Promise.all(
    servers.map(async ({ url }) =>
      (await fetch(url + path, { headers: { authorization: `Bearer ${token}`, accept: 'application/json' } })).text(),
    ),
  );
  const [first = ''] = answers;
  for (const [index, answer] of answers.entries()) {
    if (answer === first) continue;
    const at = [...answer].findIndex((character, place) => character !== first[place]);
    const near = (text: string) => text.slice(Math.max(0, at - 80), at + 80);
    throw new Error(`${servers[index]!.name} answers …${near(answer)}… where ${servers[0]!.name} has …${near(first)}…`);
  }
  return Buffer.byteLength(first);
}
