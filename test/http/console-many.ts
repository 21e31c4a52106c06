import type { Page } from 'playwright-core';
import { newId } from '../../src/kernel/ids.ts';
import { fill } from '../support/fill.ts';

/** Whose workspace it is, and what makes a request of theirs. */
interface Owner {
  orgId: string;
  workspaceId: string;
  send: <Body>(method: 'POST', url: string, body: object) => Promise<Body>;
}

/** Copies a secret of a workspace, and the record of what made it, many times: by two statements. */
export async function addMany(
  database: { url: string },
  { orgId, workspaceId, send }: Owner,
  { secrets, records }: { secrets: number; records: number },
): Promise<void> {
  const body = { name: 'KEY', secret_type: 'token', value: { value: 'x' }, workspace_id: workspaceId };
  const made = await send<{ secret_id: string }>('POST', `/v1/orgs/${orgId}/secrets`, body);
  const ids = (kind: 'secret' | 'activity', count: number) => Array.from({ length: count }, () => newId(kind));
  await fill(
    { database },
    `insert into secrets select (jsonb_populate_record(t,
         jsonb_build_object('id', n.id, 'name', 'KEY_' || lpad(n.at::text, 5, '0')))).*
       from secrets t, unnest($2::text[]) with ordinality n(id, at) where t.id = $1`,
    [made.secret_id, ids('secret', secrets - 1)],
  );
  // within seconds, so that they are in one partition
  await fill(
    { database },
    `insert into activity (id, timestamp, org_id, user_id, workspace_id, principal_type, principal_id, method, path,
         resource_type, action, status_code, success)
       select n.id, t.timestamp - n.at * interval '1 microsecond' * 100, t.org_id, t.user_id, t.workspace_id,
         t.principal_type, t.principal_id, t.method, t.path, t.resource_type, t.action, t.status_code, t.success
       from activity t, unnest($2::text[]) with ordinality n(id, at) where t.resource_id = $1 and t.action = 'create'`,
    [made.secret_id, ids('activity', records)],
  );
}

/** The cursors behind which a page of the console asks for rows, by the name of the query; `null` for a first page. */
export function pagesAskedBy(page: Page): Record<string, unknown[]> {
  const asked: Record<string, unknown[]> = {};
  page.on('request', (request) => {
    if (!request.url().endsWith('/graphql')) return;
    const { query, variables } = request.postDataJSON() as { query: string; variables?: { after?: unknown } };
    const name = /query (\w+)/.exec(query)?.[1] ?? '';
    asked[name] = [...(asked[name] ?? []), variables?.after ?? null];
  });
  return asked;
}
