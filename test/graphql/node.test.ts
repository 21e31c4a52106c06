import { type GraphQLObjectType, isObjectType } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { kindOfId } from '../../src/kernel/ids.ts';
import { schema } from '../../src/wiring/schema.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { makeGrant } from '../support/application-grant.ts';
import { operations } from '../support/operations.ts';
import { colleague, PASSWORD, type Person, register, registerProven } from '../support/person.ts';
import { expectOk, requestOf } from '../support/requests.ts';
import { issueToken } from '../support/tokens.ts';
import { findKey } from '../support/world.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const node = async (who: Person, id: string) => {
  const answer = await who.ask<{ node: { __typename: string; id: string } | null }>(
    'query ($id: ID!) { node(id: $id) { __typename id } }',
    { id },
  );
  expect(answer.errors).toBeUndefined();
  return answer.data.node;
};

/** The types of what has an id. */
const nodes = Object.values(schema.getTypeMap()).filter(
  (type): type is GraphQLObjectType => isObjectType(type) && type.getInterfaces().some(({ name }) => name === 'Node'),
);

/** One of everything that has an id, by type: what `create<Type>` makes with a sample need not be named anywhere. */
async function oneOfEach(owner: Person): Promise<Record<string, string>> {
  const made = await oneOfSome(owner);
  const ids = {
    org_id: owner.orgId,
    workspace_id: owner.workspaceId,
    namespace_id: made.Namespace!,
    app_id: made.App!,
    augmentation_id: made.Augmentation!,
  };
  let count = 0;
  const source = { marker: 'node', ids, username: owner.username, password: PASSWORD, next: () => ++count };
  for (const { name } of nodes) {
    const maker = operations.find(({ rootField }) => rootField === `create${name}`);
    if (made[name] !== undefined || !maker) continue;
    const body = await expectOk(app, requestOf(maker, source, { token: owner.accessToken }));
    made[name] = findKey(body, [`${kindOfType(name)}_id`])!;
  }
  const grant = { orgId: owner.orgId, applicationId: made.Application!, userId: owner.userId };
  return { ...made, ApplicationGrant: await makeGrant(app, grant) };
}

/** `ToolInstance` -> `tool_instance` */
const kindOfType = (name: string) => name.replaceAll(/(?<=[a-z])[A-Z]/g, '_$&').toLowerCase();

/** One of everything that needs more than a sample, and of what others are made in. */
async function oneOfSome(owner: Person): Promise<Record<string, string>> {
  const made = async (path: string, key: string, payload: object) =>
    (await owner.call<Record<string, string>>('POST', path, payload)).body[key]!;
  const app_id = await made(`${owner.home}/apps`, 'app_id', { name: 'a' });
  const members = await owner.ask<Record<string, { nodes: { id: string }[] }>>(
    'query ($orgId: ID!, $workspaceId: ID!) { organizationMembers(orgId: $orgId) { nodes { id } } ' +
      'workspaceMembers(orgId: $orgId, workspaceId: $workspaceId) { nodes { id } } ' +
      'namespaces(orgId: $orgId, workspaceId: $workspaceId) { nodes { id } } }',
    { orgId: owner.orgId, workspaceId: owner.workspaceId },
  );
  const catalog = `/v1/orgs/${owner.orgId}/model-catalog`;
  const logical_model_id = await made(catalog, 'logical_model_id', { logical_model_id: 'm', name: 'm' });
  const models = await owner.ask<Record<string, { id: string }>>(
    'query ($orgId: ID!) { logicalModel(orgId: $orgId, logicalModelId: "m") { id } }',
    { orgId: owner.orgId },
  );
  const token = await owner.ask<Record<string, { token: { id: string } }>>(
    'mutation ($orgId: ID!) { createApiToken(orgId: $orgId, input: { name: "t" }) { token { id } } }',
    { orgId: owner.orgId },
  );
  const release_id = await made(`${owner.home}/apps/${app_id}/releases`, 'release_id', {});
  const { body } = await owner.call<{ environment: { environment_id: string } }>('POST', `${owner.home}/environments`, {
    name: 'e',
    slug: 'e',
  });
  const { environment_id } = body.environment;
  const tool = await made(`/v1/orgs/${owner.orgId}/tools`, 'tool_id', {
    name: 't',
    slug: 't',
    description: 't',
    supports_connection: true,
    credential_schema: [{ name: 'key', type: 'string', sensitive: true }],
  });
  const instance = await made(`${owner.home}/tool-instances`, 'instance_id', { tool_id: tool, name: 't' });
  const of = `${owner.home}/apps/${app_id}`;
  const augmentation_id = await made(`${of}/augmentations`, 'augmentation_id', { name: 'a' });
  const execution = await owner.ask<{ reportExecution: { id: string } }>(
    `mutation ($orgId: ID!, $workspaceId: ID!, $input: ReportExecutionInput!) {
      reportExecution(orgId: $orgId, workspaceId: $workspaceId, input: $input) { id } }`,
    {
      orgId: owner.orgId,
      workspaceId: owner.workspaceId,
      input: { executionId: 'e', appId: app_id, augmentationId: augmentation_id },
    },
  );
  return {
    Tool: tool,
    ToolInstance: instance,
    ToolAuthorization: await made(`${owner.home}/connections/api-key`, 'connection_id', {
      tool_instance_id: instance,
      api_key: 'k',
    }),
    Organization: owner.orgId,
    OrganizationMember: members.data.organizationMembers!.nodes[0]!.id,
    Invitation: await made(`/v1/orgs/${owner.orgId}/invitations`, 'invitation_id', {
      email: `${owner.username}.guest@example.test`,
    }),
    User: owner.userId,
    Workspace: owner.workspaceId,
    WorkspaceMember: members.data.workspaceMembers!.nodes[0]!.id,
    Namespace: members.data.namespaces!.nodes[0]!.id,
    App: app_id,
    Augmentation: augmentation_id,
    Execution: execution.data.reportExecution.id,
    Release: release_id,
    Environment: environment_id,
    Deployment: await made(`${owner.home}/environments/${environment_id}/deploy`, 'deployment_id', {
      app_id,
      release_id,
    }),
    // somebody else revokes a token of the owner
    Notification: await told(owner),
    Secret: await made(`/v1/orgs/${owner.orgId}/secrets`, 'secret_id', {
      name: 's',
      secret_type: 'token',
      value: { token: 't' },
    }),
    ApiToken: token.data.createApiToken!.token.id,
    ProviderAccount: await made(`/v1/orgs/${owner.orgId}/provider-accounts`, 'provider_account_id', {
      name: 'a',
      provider_type: 'openai',
      credentials_ref: 'env:KEY',
    }),
    IdentityProvider: await made(`/v1/orgs/${owner.orgId}/identity-providers`, 'idp_id', {
      name: 'i',
      protocol: 'saml',
    }),
    LogicalModel: models.data.logicalModel!.id,
    ModelEntitlement: await made(`${owner.home}/model-entitlements`, 'entitlement_id', { logical_model_id }),
  };
}

/** The owner is told that another administrator revoked a token. */
async function told(owner: Person): Promise<string> {
  const admin = await colleague(app, owner, 'admin');
  const { id } = await issueToken(app, owner);
  await admin.call('DELETE', `/v1/orgs/${owner.orgId}/api-tokens/admin/${id}`);
  const list = await owner.call<{ notifications: { notification_id: string }[] }>('GET', '/v1/notifications');
  return list.body.notifications[0]!.notification_id;
}

test('finds everything that has an identifier, for those who may read it', async () => {
  const owner = await registerProven(app, { name: 'owner' });
  const ids = await oneOfEach(owner);
  expect(Object.keys(ids).sort()).toEqual(nodes.map(({ name }) => name).sort());
  for (const [__typename, id] of Object.entries(ids)) expect(await node(owner, id)).toEqual({ __typename, id });
});

test('hidden and missing are both null, never an error', async () => {
  const [owner, stranger] = [await registerProven(app, { name: 'owner' }), await register(app, { name: 'stranger' })];
  const ids = await oneOfEach(owner);
  for (const id of Object.values(ids)) expect(await node(stranger, id)).toBeNull();
  for (const id of [
    '',
    'x',
    'org_',
    'act_00000000000000000000000000',
    ...Object.values(ids).map((known) => `${known.slice(0, -3)}ZZZ`),
  ])
    expect(await node(owner, id)).toBeNull();
});

test('asks for the permission of the by-id query: what a viewer may not read is null', async () => {
  const owner = await registerProven(app, { name: 'owner' });
  const ids = await oneOfEach(owner);
  const viewer = await colleague(app, owner, 'viewer');
  const hidden = [
    'ApiToken',
    'Application',
    'ApplicationGrant',
    'AuditStream',
    'IdentityProvider',
    'Invitation',
    'Notification',
    'ProviderAccount',
    'ScimToken',
    'Secret',
    'Webhook',
    'WebhookDelivery',
  ];
  for (const [name, id] of Object.entries(ids))
    expect(await node(viewer, id)).toEqual(hidden.includes(name) ? null : { __typename: name, id });
});

test('what belongs to a deleted workspace or organization is null', async () => {
  const owner = await registerProven(app, { name: 'owner' });
  const { Namespace, Thread, App, Release, ModelEntitlement, Workspace, Organization } = await oneOfEach(owner);
  await owner.call('DELETE', owner.home);
  for (const id of [Workspace, Namespace, Thread, App, Release, ModelEntitlement])
    expect(await node(owner, id!)).toBeNull();
  await owner.call('DELETE', `/v1/orgs/${owner.orgId}`);
  expect(await node(owner, Organization!)).toBeNull();
});

test('what was read stands in the audit trail of its own organization', async () => {
  const owner = await registerProven(app, { name: 'owner' });
  const guest = await colleague(app, owner, 'viewer');
  const { App } = await oneOfEach(owner);
  await node(guest, App!);
  await app.services.activity.flush();
  const records = await app.database.prisma.activity.findMany({ where: { resourceId: App!, action: 'read' } });
  expect(records).toMatchObject([
    {
      resourceType: kindOfId(App!),
      orgId: owner.orgId,
      workspaceId: owner.workspaceId,
      userId: guest.userId,
      statusCode: 200,
    },
  ]);
});
