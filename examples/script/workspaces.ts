// Lists the workspaces of your first organization, makes one, and waits for the first thing that happens in it:
// `node workspaces.js http://127.0.0.1:4000 TOKEN`.
import { ApiError, Client } from 'platform-management-client';
import { MeDocument } from 'platform-management-client/documents';

declare const process: { argv: string[] };

const [, , url = 'http://127.0.0.1:4000', credentials = ''] = process.argv;
const client = new Client({ url, credentials });

const { me } = await client.query(MeDocument, {});
const org_id = me.organizations.nodes[0]?.id;
if (org_id === undefined) throw new Error('You have no organization.');

for await (const { name } of client.list('/v1/orgs/{org_id}/workspaces', { path: { org_id } })) console.log(name);

const { data: made } = await client.rest.POST('/v1/orgs/{org_id}/workspaces', {
  params: { path: { org_id } },
  body: { organization_id: org_id, name: 'Research' },
});
console.log('made', made.name);
const path = { org_id, workspace_id: made.workspace_id };

await client.rest
  .GET('/v1/orgs/{org_id}/secrets/{secret_id}', { params: { path: { org_id, secret_id: 'sec_none' } } })
  .catch((error: unknown) => console.log('refused:', error instanceof ApiError ? error.code : error));

for await (const { event } of client.events(path)) {
  if (event.type === 'connected')
    await client.rest.POST('/v1/orgs/{org_id}/workspaces/{workspace_id}/namespaces', {
      params: { path },
      body: { name: 'Notes' },
    });
  if (event.type !== 'namespace.created') continue;
  console.log(event.type);
  break;
}
