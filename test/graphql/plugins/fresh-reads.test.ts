import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { createUser, type Person, register } from '../../support/person.ts';

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await register(app);
});
afterAll(() => app.close());

it('shows what each mutation of one request has changed, whatever an earlier one of it has read', async () => {
  const colleague = await createUser(app, owner, { username: 'fresh', role: 'member' });
  const shown =
    'workspace { apps { totalCount nodes { name } } ' +
    'organization { name members { nodes { username role fullName } } } owner { fullName } }';
  const make = (alias: string) =>
    `${alias}: createApp(orgId: $org, workspaceId: $ws, input: { name: "${alias}" }) { ${shown} }`;
  const query = `mutation ($org: ID!, $ws: ID!, $me: ID!, $colleague: ID!) {
    ${make('first')}
    renamed: updateOrganization(id: $org, input: { name: "Renamed" }) { name }
    introduced: updateUser(id: $me, input: { fullName: "Ann Other" }) { fullName }
    role: updateOrganizationMember(orgId: $org, userId: $colleague, input: { role: admin }) { role }
    ${make('second')}
  }`;
  const { orgId: org, workspaceId: ws, userId: me } = owner;
  const variables = { org, ws, me, colleague: colleague.userId };
  const { data, errors } = (await callsOf(app).graphql(query, variables, owner.headers)).json();
  expect(errors).toBeUndefined();
  const members = (role: string) => [
    expect.objectContaining({ role: 'owner' }),
    expect.objectContaining({ username: colleague.username, role }),
  ];
  expect(data.first.workspace).toMatchObject({
    apps: { totalCount: 1, nodes: [{ name: 'first' }] },
    organization: { members: { nodes: members('member') } },
  });
  expect(data.second.workspace).toEqual({
    apps: { totalCount: 2, nodes: [{ name: 'second' }, { name: 'first' }] },
    organization: { name: 'Renamed', members: { nodes: members('admin') } },
    owner: { fullName: 'Ann Other' },
  });
});
