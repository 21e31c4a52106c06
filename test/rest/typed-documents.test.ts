import { afterAll, beforeAll, expect, expectTypeOf, it } from 'vitest';
import {
  CreateWorkspaceDocument,
  GetWorkspaceDocument,
  ListWorkspacesDocument,
} from '../../rest/generated/documents.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type Person, register } from '../support/person.ts';
import { ask } from '../support/typed-client.ts';
import { waitUntil } from '../support/wait.ts';

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
});
afterAll(() => app.close());

it('operations of the façade are typed documents for GraphQL clients, with the values that REST answers', async () => {
  const { orgId, headers } = owner;
  const { createWorkspace } = await ask(app, headers, CreateWorkspaceDocument, {
    org_id: orgId,
    body: { organizationId: orgId, name: 'Typed', tags: ['a'] },
  });
  expectTypeOf(createWorkspace.name).toEqualTypeOf<string>();
  expectTypeOf(createWorkspace.description).toEqualTypeOf<string | null>();
  const id = createWorkspace.workspace_id;
  const read = () => ask(app, headers, GetWorkspaceDocument, { org_id: orgId, workspace_id: id });
  // the background task that makes the bucket must not come between the two reads
  await waitUntil(async () => (await read()).workspace.bucketStatus === 'ready');
  const { workspace } = await read();
  const rest = await app.server.inject({ url: `/v1/orgs/${orgId}/workspaces/${id}`, headers });
  const { resourceVersion, ...shown } = workspace;
  expect(Object.values(shown)).toEqual(Object.values(rest.json<Record<string, unknown>>()));
  expect(rest.headers.etag).toBe(`"${resourceVersion}"`);
  const { workspaces } = await ask(app, headers, ListWorkspacesDocument, { org_id: orgId, limit: 1 });
  expectTypeOf(workspaces.total).toEqualTypeOf<number>();
  expect(workspaces).toMatchObject({ total: 2, pageInfo: { has_more: true }, workspaces: [{ name: 'Typed' }] });
});
