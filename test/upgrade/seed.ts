import type { Client, Json } from '../support/client.ts';

/** For tests alone: nothing but the dumps beside this file is opened by these. */
export const TEST_ONLY = {
  APP_SECRET: 'test-only-secret-of-the-upgrade-dumps-test-only',
  ROOT_KEYS: `test-only:${Buffer.from('test-only, and 32 bytes long too').toString('base64')}`,
};

const PASSWORD = 'the password of an upgrade';

/** What a test needs to go on where the seed ended. */
export interface Seeded {
  username: string;
  password: string;
  refreshToken: string;
  /** API token; absent before there were any. */
  apiToken?: string;
  /** Values of path variables: identifiers of things that the seed made. */
  ids: Record<string, string>;
  /** Paths of secrets with their values; reading one is counted. */
  reveals: string[];
}

/**
 * Writes something into every table through the API. It runs against services of every version: what belongs to a table
 * is made only where that table exists.
 * @param prove makes the address of an account a proven one: only who has proven an address invites others
 */
export async function seed(
  anyone: Client,
  tables: ReadonlySet<string>,
  prove: (userId: string) => Promise<unknown>,
): Promise<Seeded> {
  const operator = await register(anyone, 'operator');
  const first = await register(anyone, 'ann');
  await prove(text(first.user as Json, 'user_id'));
  const ann = anyone.with(text(first, 'access_token'));
  const user = first.user as Json & { settings: Json };
  const ids: Record<string, string> = {
    org_id: text(user.settings, 'current_org_id'),
    user_id: text(user, 'user_id'),
    workspace_id: text(user, 'default_workspace_id'),
  };
  const org = `/v1/orgs/${ids.org_id}`;
  await seedPeople(ann, anyone, org, ids, text(operator.user as Json, 'user_id'));
  await seedWorkspaces(ann, first, org, ids);
  const seeded: Seeded = { username: 'ann', password: PASSWORD, refreshToken: '', ids, reveals: [] };
  if (tables.has('environments')) await seedEnvironments(ann, org, ids);
  if (tables.has('secrets')) seeded.reveals = await seedSecrets(ann, org, ids);
  if (tables.has('logical_models')) await seedModels(ann, org, ids);
  if (tables.has('tools')) await seedTools(ann, org, ids);
  if (tables.has('entities')) await seedGraph(ann, org, ids, tables);
  if (tables.has('artifacts')) await seedArtifacts(ann, org, ids);
  if (tables.has('tool_instances')) await seedConnections(ann, org, ids);
  if (tables.has('connect_links'))
    await ann.post(`${org}/workspaces/${ids.workspace_id}/tool-instances/${ids.instance_id}/connect-links`, {
      end_user_id: 'user-of-old',
      name: 'Eve',
    });
  if (tables.has('tool_confirmations'))
    await ann.post(`${org}/workspaces/${ids.workspace_id}/tool-instances/${ids.instance_id}/execute`, {
      action: 'drop',
    });
  if (tables.has('augmentations')) await seedPipelines(ann, org, ids, tables);
  if (tables.has('organization_recipes')) await seedRecipes(ann, org, ids);
  if (tables.has('webhooks')) await seedWebhooks(ann, org, ids);
  if (tables.has('audit_streams')) await seedAuditStreams(ann, org, ids);
  if (tables.has('api_tokens')) seeded.apiToken = await seedTokens(ann, anyone, org, ids);
  // before what ann is told
  if (tables.has('notification_schedules'))
    await ann.query(`mutation { updateNotificationSchedules(input: { digestHour: 7, schedules: [
      { frequency: daily }, { category: token, frequency: immediate }] }) { timeZone } }`);
  if (tables.has('notifications')) await seedNotifications(ann, anyone, org, ids);
  if (tables.has('notification_mutes'))
    await ann.query(`mutation { updateNotificationMutes(input: { mutes: [{ category: model, channel: mail,
      orgId: "${ids.org_id!}" }] }) { mutes { category } } }`);
  // an app for one-time codes that is begun, and asked for nowhere
  if (tables.has('totp_factors')) await ann.post('/v1/auth/factors/totp', { current_password: PASSWORD });
  await seedPlain(ann, ids);
  const refreshed = await anyone.post('/v1/auth/refresh', { refresh_token: text(first, 'refresh_token') });
  seeded.refreshToken = text(refreshed, 'refresh_token');
  return seeded;
}

interface Documented {
  post?: { requestBody?: { content: Record<string, { example?: Json }> } };
  delete?: object;
}

/**
 * Makes one of each resource that nothing above has made, by the example of its body: what can be created and deleted
 * in a place that is there, and is known by an id of its own.
 */
async function seedPlain(ann: Client, ids: Record<string, string>): Promise<void> {
  const { paths } = (await ann.get('/openapi.json')) as { paths: Record<string, Documented> };
  const filled = (template: string) => template.replaceAll(/\{(\w+)\}/g, (whole, name: string) => ids[name] ?? whole);
  for (const [path, { delete: remove }] of Object.entries(paths)) {
    const [, folder, id] = /^(.+)\/\{(\w+_id)\}$/.exec(path) ?? [];
    if (!remove || !folder || !id || ids[id] !== undefined) continue;
    const example = paths[folder]?.post?.requestBody?.content['application/json']?.example;
    const [place, body] = [filled(folder), filled(JSON.stringify(example ?? null))];
    if (!example || /\{\w+\}/.test(place + body)) continue;
    const made = await ann.post(place, JSON.parse(body) as Json);
    // some answer what they made beside other things
    ids[id] = text([made, ...Object.values(made)].find((part) => isWith(part, id)) ?? made, id);
  }
}

const isWith = (value: unknown, key: string): value is Json =>
  typeof value === 'object' && value !== null && key in value;

/** The text of a key. @throws Error when the answer has none */
export function text(body: Json, key: string): string {
  const value = body[key];
  if (typeof value !== 'string') throw new Error(`no ${key} in ${JSON.stringify(body)}`);
  return value;
}

function register(anyone: Client, username: string): Promise<Json> {
  const person = { email: `${username}@example.test`, username, password: PASSWORD, full_name: `${username} of old` };
  return anyone.post('/v1/auth/register', person);
}

async function seedPeople(ann: Client, anyone: Client, org: string, ids: Json, guestId: string): Promise<void> {
  await ann.must('PUT', org, { description: 'An organization of old.' });
  await ann.post('/v1/orgs', { name: 'A second organization' });
  await ann.must('PATCH', '/v1/users/me/preferences', {
    preferences: { theme: 'dark', nested: { list: [1, 'two', null] } },
  });
  const bob = { email: 'bob@example.test', username: 'bob', password: PASSWORD, full_name: "Bob 'B' Ünïcode \\ 🙂" };
  ids.member_user_id = text(await ann.post('/v1/users', { ...bob, role: 'member' }), 'user_id');
  const member = { user_id: ids.member_user_id, role: 'editor' };
  await ann.post(`${org}/workspaces/${String(ids.workspace_id)}/members`, member);
  await ann.post(`${org}/members`, { user_id: guestId, role: 'viewer' });
  const invitation = await ann.post(`${org}/invitations`, { email: 'carl@example.test', role: 'viewer' });
  ids.invitation_id = text(invitation, 'invitation_id');
  await anyone.post('/v1/auth/forgot-password', { email: 'bob@example.test' });
  await anyone.call('POST', '/v1/auth/login', { username: 'bob', password: 'not the password' });
}

async function seedWorkspaces(ann: Client, first: Json, org: string, ids: Json): Promise<void> {
  const once = ann.with(text(first, 'access_token'), { 'idempotency-key': 'an-upgrade' });
  await once.post(`${org}/workspaces`, { organization_id: ids.org_id, name: 'Research', tags: ['one', 'two'] });
  const gone = await ann.post(`${org}/workspaces`, { organization_id: ids.org_id, name: 'Deleted' });
  await ann.must('DELETE', `${org}/workspaces/${text(gone, 'workspace_id')}`);
  const home = `${org}/workspaces/${String(ids.workspace_id)}`;
  await ann.must('PUT', home, { language: 'en' });
  ids.namespace_id = text(await ann.post(`${home}/namespaces`, { name: 'Notes', slug: 'notes' }), 'namespace_id');
  for (const title of ['First', 'Second']) {
    const threads = `${home}/namespaces/${String(ids.namespace_id)}/threads`;
    ids.thread_id = text(await ann.post(threads, { title, metadata: { deep: { er: [true, 1.5] } } }), 'thread_id');
  }
  await ann.must('PUT', `${home}/namespaces/${String(ids.namespace_id)}/threads/${String(ids.thread_id)}`, {
    title: 'Changed',
  });
  ids.app_id = text(await ann.post(`${home}/apps`, { name: 'Shop', metadata: { tier: 1 } }), 'app_id');
  const releases = `${home}/apps/${String(ids.app_id)}/releases`;
  ids.previous_release_id = text(await ann.post(releases, { version: '1.0.0' }), 'release_id');
  ids.release_id = text(await ann.post(releases, { version: '1.1.0', notes: 'Better.' }), 'release_id');
}

async function seedGraph(ann: Client, org: string, ids: Json, tables: ReadonlySet<string>): Promise<void> {
  const app = `${org}/workspaces/${String(ids.workspace_id)}/apps/${String(ids.app_id)}`;
  const graph = `${app}/namespaces/${String(ids.namespace_id)}`;
  const metadata = { external_id: 17, deep: { er: [true, 1.5] } };
  const ada = { name: 'Ada', entity_type: 'person', aliases: ['Countess'], importance: 0.9, metadata };
  ids.entity_id = text(await ann.post(`${graph}/entities`, ada), 'entity_id');
  const other = text(await ann.post(`${graph}/entities`, { name: 'Engine' }), 'entity_id');
  await ann.must('POST', `${graph}/entities/relations`, {
    source_entity_id: ids.entity_id,
    target_entity_id: other,
    relation_type: 'programs',
    valid_from: '1842-10-18T00:00:00Z',
    valid_to: '1843-09-01T00:00:00Z',
  });
  const memory = await ann.post(`${graph}/memories`, { content: 'The first.', entity_ids: [ids.entity_id, other] });
  ids.memory_id = text(memory, 'memory_id');
  if (!tables.has('entity_merges')) return;
  const same = text(await ann.post(`${graph}/entities`, { name: 'Ada of old' }), 'entity_id');
  await ann.must('POST', `${graph}/entities/${String(ids.entity_id)}/merge`, { merged_entity_ids: [same] });
}

async function seedPipelines(ann: Client, org: string, ids: Json, tables: ReadonlySet<string>): Promise<void> {
  const app = `${org}/workspaces/${String(ids.workspace_id)}/apps/${String(ids.app_id)}`;
  const steps = [
    { name: 'Ask', step_type: 'llm', config: { prompt: 'Answer.' }, logical_model_id: ids.logical_model_id },
    { name: 'Send', step_type: 'tool', tool_instance_id: ids.tool_instance_id },
  ];
  const pipeline = { name: 'Answers', stages: [{ name: 'First', steps }, { name: 'Second' }] };
  ids.augmentation_id = text(await ann.post(`${app}/augmentations`, pipeline), 'augmentation_id');
  const { augmentation_id } = ids;
  const endpoint = { name: 'Chat', path: '/chat', augmentation_id };
  ids.endpoint_id = text(await ann.post(`${app}/endpoints`, endpoint), 'endpoint_id');
  const action = { name: 'Yearly', kind: 'scheduled', cron: '0 0 1 1 *', timezone: 'Europe/Rome', augmentation_id };
  ids.action_id = text(await ann.post(`${app}/actions`, action), 'action_id');
  if (!tables.has('executions')) return;
  ids.execution_id = 'run-1';
  // of the catalogue, which is the same everywhere
  ids.recipe_id = 'starter-chat';
  const { app_id, execution_id, endpoint_id } = ids;
  const report = { execution_id, app_id, augmentation_id, endpoint_id, stages_completed: 1 };
  await ann.post(`${org}/workspaces/${String(ids.workspace_id)}/executions`, { ...report, token_usage: { input: 9 } });
}

/** A recipe of the organization, in two versions. */
async function seedRecipes(ann: Client, org: string, ids: Json): Promise<void> {
  const recipe = { ...(await ann.get(`${org}/recipes/starter-chat`)), id: 'chat-of-old' };
  const made = await ann.post(`${org}/organization-recipes`, { recipe });
  ids.organization_recipe_id = text(made, 'organization_recipe_id');
  const url = `${org}/organization-recipes/${String(ids.organization_recipe_id)}`;
  await ann.must('PUT', url, { recipe: { ...recipe, name: 'A better chat' } });
  const list = (await ann.get(`${url}/versions`)) as { organization_recipe_versions?: Json[] };
  const [, first] = list.organization_recipe_versions ?? [];
  ids.organization_recipe_version_id = text(first ?? {}, 'organization_recipe_version_id');
}

/** An artifact of two versions that is a source, a file, and a source of its own. */
async function seedArtifacts(ann: Client, org: string, ids: Json): Promise<void> {
  const home = `${org}/workspaces/${String(ids.workspace_id)}`;
  const artifacts = `${home}/namespaces/${String(ids.namespace_id)}/artifacts`;
  const file = new FormData();
  file.set('name', 'Numbers of old');
  file.set('file', new Blob(['bird,count\nlark,3\n'], { type: 'text/csv' }), 'numbers.csv');
  await ann.submit(`${artifacts}/upload`, file);
  const plan = await ann.post(artifacts, {
    name: 'Plan',
    content: '# Plan of old',
    artifact_type: 'markdown',
    thread_id: ids.thread_id,
    tags: ['one', 'two'],
    metadata: { deep: { er: [true, 1.5] } },
    language: 'en',
    ttl_seconds: 86_400,
    is_pinned: true,
  });
  const id = text(plan, 'artifact_id');
  ids.artifact_id = id;
  await ann.must('PUT', `${artifacts}/${id}`, { content: '# A better plan, with words' });
  await ann.post(`${artifacts}/${id}/promote`, { name: 'Knowledge' });
  const source = { name: 'By hand', description: 'Old.', namespace_id: ids.namespace_id };
  ids.source_id = text(await ann.post(`${home}/sources`, source), 'source_id');
}

/** What is muted, and what Ann is told: that somebody else has made her a member. */
async function seedNotifications(ann: Client, anyone: Client, org: string, ids: Json): Promise<void> {
  await ann.must('PUT', '/v1/notifications/preferences', { muted_categories: ['model'] });
  const bob = await anyone.post('/v1/auth/login', { username: 'bob', password: PASSWORD });
  const byBob = anyone.with(text(bob, 'access_token'));
  await ann.must('PATCH', `${org}/members/${String(ids.member_user_id)}`, { role: 'owner' });
  const made = await byBob.post(`${org}/workspaces`, { organization_id: ids.org_id, name: 'Of Bob' });
  const members = `${org}/workspaces/${text(made, 'workspace_id')}/members`;
  await byBob.post(members, { user_id: ids.user_id, role: 'viewer' });
  const list = (await ann.get('/v1/notifications')) as { notifications?: Json[] };
  // the right one has ended the count
  await anyone.call('POST', '/v1/auth/login', { username: 'bob', password: 'not the password' });
  ids.notification_id = text(list.notifications?.[0] ?? {}, 'notification_id');
}

/** Who is present is forgotten after a minute: it is written last. */
export async function seedPresence(ann: Client, { ids }: Pick<Seeded, 'ids'>): Promise<void> {
  const sync = `/v1/orgs/${String(ids.org_id)}/workspaces/${String(ids.workspace_id)}/sync`;
  await ann.must('POST', `${sync}/presence/join`);
}

async function seedEnvironments(ann: Client, org: string, ids: Json): Promise<void> {
  const environments = `${org}/workspaces/${String(ids.workspace_id)}/environments`;
  for (const slug of ['staging', 'production']) {
    const made = await ann.post(environments, { name: slug, slug });
    ids.environment_id = text(made.environment as Json, 'environment_id');
  }
  for (const release_id of [ids.previous_release_id, ids.release_id, ids.previous_release_id])
    await ann.post(`${environments}/${String(ids.environment_id)}/deploy`, { app_id: ids.app_id, release_id });
}

/** @returns the paths that show the values */
async function seedSecrets(ann: Client, org: string, ids: Json): Promise<string[]> {
  const made = { secret_type: 'api_key', value: { api_key: 'test-only-1' } };
  const secret = await ann.post(`${org}/secrets`, { ...made, name: 'openai', rotation_reminder_days: 90 });
  Object.assign(ids, { secret_id: text(secret, 'secret_id'), name: 'openai' });
  for (const version of [2, 3])
    await ann.post(`${org}/secrets/${String(ids.secret_id)}/rotate`, { value: { api_key: `test-only-${version}` } });
  const places = { workspace_id: ids.workspace_id, namespace_id: ids.namespace_id };
  await ann.post(`${org}/secrets`, { ...made, ...places, name: 'of-notes' });
  const gone = text(await ann.post(`${org}/secrets`, { ...made, name: 'deleted' }), 'secret_id');
  await ann.must('DELETE', `${org}/secrets/${gone}`);
  return [`${org}/secrets/by-name/openai?include_value=true`, `${org}/secrets/${String(ids.secret_id)}/versions`];
}

async function seedTools(ann: Client, org: string, ids: Json): Promise<void> {
  const config_schema = [{ name: 'region', type: 'string', default: 'eu' }];
  const made = await ann.post(`${org}/tools`, { name: 'Tickets', slug: 'tickets', description: 'Old.', config_schema });
  Object.assign(ids, { tool_id: text(made, 'tool_id'), slug: 'tickets' });
  await ann.must('PUT', `${org}/tools/${String(ids.tool_id)}`, {
    config_schema: [...config_schema, { name: 'queue' }],
  });
}

/** One whose test finds nobody. */
async function seedWebhooks(ann: Client, org: string, ids: Json): Promise<void> {
  const hook = { name: 'Hook', url: 'https://hooks.example.test/in', event_types: ['secret.destroyed'] };
  ids.webhook_id = text((await ann.post(`${org}/webhooks`, hook)).webhook as Json, 'webhook_id');
  await ann.post(`${org}/webhooks/${String(ids.webhook_id)}/test`);
}

/** One that asks for nothing that happens, and whose test finds nobody. */
async function seedAuditStreams(ann: Client, org: string, ids: Json): Promise<void> {
  const stream = { name: 'Stream', target_type: 'http', url: 'https://logs.example.test/in', actions: ['upgrade'] };
  ids.audit_stream_id = text(await ann.post(`${org}/audit-streams`, stream), 'audit_stream_id');
  await ann.post(`${org}/audit-streams/${String(ids.audit_stream_id)}/test`);
}

/** What the seed has sealed for a tool instance and for its connection. */
export const SEALED = { token: 'test-only-token', apiKey: 'test-only-key' };

/** An instance that is connected for its workspace, and whose authorization for a namespace was begun. */
async function seedConnections(ann: Client, org: string, ids: Json): Promise<void> {
  const service = {
    name: 'oauth',
    type: 'oauth2',
    authorization_url: 'https://provider.example.test/authorize',
    token_url: 'https://provider.example.test/token',
  };
  const tool = await ann.post(`${org}/tools`, {
    name: 'Mail',
    slug: 'mail',
    description: 'Sends mail.',
    config_schema: [{ name: 'region' }, { name: 'token', widget: 'password' }],
    credential_schema: [service, { name: 'api_key', type: 'secret', required: false }],
    supports_connection: true,
    action_schemas: [{ name: 'drop', is_destructive: true }],
  });
  const home = `${org}/workspaces/${String(ids.workspace_id)}`;
  const instance = await ann.post(`${home}/tool-instances`, {
    tool_id: text(tool, 'tool_id'),
    name: 'Mail of old',
    configuration: { region: 'eu', token: SEALED.token },
    auth_mode: 'oauth2',
    connection_credentials: { client_id: 'a-client' },
  });
  const tool_instance_id = text(instance, 'instance_id');
  Object.assign(ids, { instance_id: tool_instance_id, tool_instance_id });
  await ann.post(`${home}/connections/api-key`, { tool_instance_id, api_key: SEALED.apiKey });
  const connections = `${home}/namespaces/${String(ids.namespace_id)}/connections`;
  await ann.post(`${connections}/oauth/initiate`, { tool_instance_id });
}

async function seedModels(ann: Client, org: string, ids: Json): Promise<void> {
  const account = {
    name: 'Provider',
    provider_type: 'openai',
    data_residency: 'eu',
    credentials_ref: 'secret://openai',
  };
  ids.provider_account_id = text(await ann.post(`${org}/provider-accounts`, account), 'provider_account_id');
  ids.logical_model_id = 'large';
  const target = { provider_account_id: ids.provider_account_id, model_name: 'large-1', weight: 70 };
  const model = { logical_model_id: 'large', name: 'Large', targets: [target], capabilities: { tools: true } };
  await ann.post(`${org}/model-catalog`, model);
  const home = `${org}/workspaces/${String(ids.workspace_id)}`;
  const limits = { max_tokens_per_month: 1_000_000 };
  await ann.post(`${home}/model-entitlements`, { logical_model_id: 'large', workspace_limits: limits });
  const report = `{ providerAccountId: "${String(ids.provider_account_id)}", modelName: "large-1", outcome: SUCCESS,
    inputTokens: 900, outputTokens: 100 }`;
  const where = `orgId: "${String(ids.org_id)}", workspaceId: "${String(ids.workspace_id)}", logicalModelId: "large"`;
  await ann.query(`mutation { reportModelUsage(${where}, input: ${report}) { requestCount } }`);
}

/** @returns a token that may read */
async function seedTokens(ann: Client, anyone: Client, org: string, ids: Json): Promise<string> {
  await ann.post(`${org}/apps/${String(ids.app_id)}/tokens`, { name: 'of the shop', scopes: ['read'] });
  const revoked = await ann.post(`${org}/api-tokens`, { name: 'revoked', scopes: ['read'] });
  await ann.must('DELETE', `${org}/api-tokens/${text(revoked.token as Json, 'token_id')}`);
  const refreshed = await ann.post(`${org}/api-tokens`, { name: 'refreshed', scopes: ['read'] });
  await anyone.post(`${org}/api-tokens/refresh`, { refresh_token: text(refreshed, 'refresh_token_plaintext') });
  const made = await ann.post(`${org}/api-tokens`, { name: 'ci', scopes: ['read'], workspace_ids: [ids.workspace_id] });
  const token = text(made, 'plaintext_token');
  await anyone.with(token).get(`${org}/workspaces/${String(ids.workspace_id)}`);
  return token;
}
