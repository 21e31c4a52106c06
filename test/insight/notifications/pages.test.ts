import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { type ConfigError, loadConfig } from '../../../src/config.ts';
import { pageKinds } from '../../../src/platform/settings/app-pages.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { callsOf } from '../../support/calls.ts';
import { colleague, type Person, register } from '../../support/person.ts';
import { issueToken } from '../../support/tokens.ts';
import { newSecret } from '../../vault/secrets/new-secret.ts';
import { deployable, listOf } from './told.ts';

let app: TestApp;
let own: TestApp;
beforeAll(async () => {
  app = await startTestApp({
    env: {
      APP_URL: 'https://app.example.com/console/',
      APP_PAGES: 'workspace=/w/{workspace_id}?tab=people#{notification_id}, secret=/vault/{secret_id}',
    },
  });
  own = await app.another({ APP_URL: '', APP_PAGES: '', PUBLIC_URL: 'https://api.example.com' });
});
afterAll(() => app.close());

/** A notification as it was told, with its link. */
async function told(who: Person, event: string) {
  const { notifications } = await listOf(who, '?limit=100');
  const found = notifications.find(({ source_event }) => source_event === event);
  expect(found, event).toBeDefined();
  return found!;
}

describe('with APP_URL', () => {
  it('a notification leads to the page of its resource in the front end, as APP_PAGES says or by default', async () => {
    const ann = await register(app, { name: 'ann' });
    const admin = await colleague(app, ann, 'admin');
    const { release, deploy, environmentId } = await deployable(ann);
    await deploy(ann, await release('1.0.0'));
    const base = 'https://app.example.com/console';
    const org = `${base}/orgs/${ann.orgId}`;
    const added = await told(admin, 'workspace_member.created');
    expect(added).toMatchObject({
      action_url: `${base}/w/${ann.workspaceId}?tab=people#${added.notification_id}`,
      action_label: 'Open workspace',
    });
    expect((await told(admin, 'organization_member.created')).action_url).toBe(org);
    expect((await told(admin, 'deployment.created')).action_url).toBe(
      `${org}/workspaces/${ann.workspaceId}/environments/${environmentId}/deployments`,
    );
    const query = '{ notifications { nodes { sourceEvent actionUrl resourcePath } } }';
    const { data } = await admin.ask<{ notifications: { nodes: Record<string, string>[] } }>(query);
    expect(data.notifications.nodes.find(({ sourceEvent }) => sourceEvent === 'deployment.created')).toEqual({
      sourceEvent: 'deployment.created',
      actionUrl: `${org}/workspaces/${ann.workspaceId}/environments/${environmentId}/deployments`,
      resourcePath: `${ann.home}/environments/${environmentId}/deployments`,
    });
  });

  it('its mail has the same link', async () => {
    const ann = await register(app, { name: 'ann' });
    const { secret_id } = await newSecret(ann);
    const { id } = await issueToken(app, ann);
    const soon = `now() + interval '2 days'`;
    const old = `now() - interval '1 year'`;
    await app.database.pool.query(`update secrets set created_at = ${old}, expires_at = ${soon} where id = $1`, [
      secret_id,
    ]);
    await app.database.pool.query(`update api_tokens set issued_at = ${old}, expires_at = ${soon} where id = $1`, [id]);
    await app.services.secretNotices.send();
    await app.services.apiTokenNotices.send();
    await app.jobsDone();
    const links = app.mails.filter(({ to }) => to === ann.email).map(({ subject, link }) => [subject, link]);
    const secret = await told(ann, 'secret.expiring');
    expect(secret.action_url).toBe(`https://app.example.com/console/vault/${secret_id}`);
    expect(links).toContainEqual([secret.title, secret.action_url]);
    const tokens = `https://app.example.com/console/orgs/${ann.orgId}/api-tokens`;
    expect(links).toContainEqual(['A token expires in 3 days', tokens]);
    const mail = app.mails.find(({ to, link }) => to === ann.email && link === tokens)!;
    expect(mail.text).toContain(`\n\n${tokens}\n`);
  });
});

test("without it, a notification of before leads to a page of the service's own", async () => {
  const ann = await register(app, { name: 'ann' });
  const bob = await colleague(app, ann, 'viewer');
  const answer = await callsOf(own).get('/v1/notifications', bob.headers);
  const { notifications } = answer.json<Awaited<ReturnType<typeof listOf>>>();
  expect(notifications).toHaveLength(2);
  for (const { notification_id, action_url } of notifications)
    expect(action_url).toBe(`https://api.example.com/account/sign-in?notification=${notification_id}`);
  expect((await own.server.inject({ url: new URL(notifications[0]!.action_url!).pathname })).statusCode).toBe(200);
});

describe('APP_PAGES', () => {
  const problemOf = (value: string): string | undefined => {
    try {
      loadConfig({ APP_PAGES: value });
    } catch (error) {
      return (error as ConfigError).problems[0];
    }
    return undefined;
  };

  it.each([
    'workspace=/w/{workspace_id}',
    ' account = /me , models=/models/{logical_model_id}',
    'secret=/{org_id}/{secret_id}?from={notification_id}',
    ...pageKinds.map((kind) => `${kind}=/somewhere`),
  ])('takes %s', (value) => {
    expect(problemOf(value)).toBeUndefined();
  });

  it.each([
    'workspace',
    'wokspace=/w',
    'workspace=w/{workspace_id}',
    'workspace=//evil.example.com/',
    'workspace=https://evil.example.com/',
    'workspace=/w/{workspace}',
    'account=/{org_id}',
    'secret=/s/{secret_id',
    'secret=/s/ {secret_id}',
    'secret=/a,secret=/b',
    'workspace=/w/{constructor}',
  ])('refuses %s at the start', (value) => {
    expect(problemOf(value)).toMatch(/^APP_PAGES must be pages like /);
  });
});
