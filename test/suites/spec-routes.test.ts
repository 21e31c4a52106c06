import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { certificate } from '../support/certificate.ts';
import { operations } from '../support/operations.ts';
import { PASSWORD } from '../support/person.ts';
import { expectOk } from '../support/requests.ts';
import { createWorld, type World } from '../support/world.ts';

const O = '/v1/orgs/{org_id}';
const W = `${O}/workspaces/{workspace_id}`;
const N = `${W}/namespaces/{namespace_id}`;
const E = `${W}/apps/{app_id}/namespaces/{namespace_id}`;

/**
 * The tables of the spec that are built: method, path, error set, status of success (defaults §0.2). Copied by hand.
 */
const spec: [method: string, path: string, errors: string, status: number][] = [
  ['GET', '/v1/auth/config', 'A0', 200],
  ['GET', '/v1/auth/invite-info', 'A', 200],
  ['GET', '/v1/auth/me', 'A', 200],
  ['POST', '/v1/auth/register', 'A', 201],
  ['POST', '/v1/auth/login', 'A', 200],
  ['POST', '/v1/auth/logout', 'A', 200],
  ['POST', '/v1/auth/verify-email', 'A', 200],
  ['POST', '/v1/auth/resend-verification', 'A', 200],
  ['POST', '/v1/auth/refresh', 'A', 200],
  ['POST', '/v1/auth/switch-org', 'A', 200],
  ['POST', '/v1/auth/forgot-password', 'A', 200],
  ['POST', '/v1/auth/reset-password', 'A', 200],
  ['GET', '/v1/auth/me/profile', 'A', 200],
  ['POST', '/v1/auth/sso/discover', 'S', 200],
  ['POST', '/v1/auth/sso/initiate', 'S', 200],
  ['POST', '/v1/auth/sso/callback/saml', 'S0', 200],
  ['GET', '/v1/auth/sso/callback/oidc', 'S', 200],
  ['GET', '/v1/users', 'B', 200],
  ['POST', '/v1/users', 'B', 201],
  ['GET', '/v1/users/me', 'B', 200],
  ['GET', '/v1/users/{user_id}', 'B', 200],
  ['PUT', '/v1/users/{user_id}', 'B', 200],
  ['DELETE', '/v1/users/{user_id}', 'B', 204],
  ['PATCH', '/v1/users/me/preferences', 'B', 200],
  ['GET', '/v1/notifications', 'B', 200],
  ['GET', '/v1/notifications/unread-count', 'B', 200],
  ['POST', '/v1/notifications/{notification_id}/read', 'B', 200],
  ['POST', '/v1/notifications/read-all', 'B', 200],
  ['GET', '/v1/notifications/preferences', 'B', 200],
  ['PUT', '/v1/notifications/preferences', 'B', 200],
  ['DELETE', '/v1/notifications/{notification_id}', 'B', 200],
  ['GET', `${O}/identity-providers`, 'A', 200],
  ['POST', `${O}/identity-providers`, 'A', 201],
  ['GET', `${O}/identity-providers/{idp_id}`, 'A', 200],
  ['PUT', `${O}/identity-providers/{idp_id}`, 'A', 200],
  ['DELETE', `${O}/identity-providers/{idp_id}`, 'A', 204],
  ['GET', `${O}/workspaces`, 'B', 200],
  ['POST', `${O}/workspaces`, 'B', 201],
  ['GET', W, 'B', 200],
  ['PUT', W, 'B', 200],
  ['DELETE', W, 'B', 200],
  ['GET', `${W}/members`, 'B', 200],
  ['POST', `${W}/members`, 'B', 201],
  ['PATCH', `${W}/members/{member_user_id}`, 'B', 200],
  ['DELETE', `${W}/members/{member_user_id}`, 'B', 204],
  ['GET', `${O}/tools`, 'C', 200],
  ['POST', `${O}/tools`, 'C', 201],
  ['GET', `${O}/tools/custom-action-schemas`, 'C', 200],
  ['GET', `${O}/tools/{tool_id}`, 'C', 200],
  ['PUT', `${O}/tools/{tool_id}`, 'C', 200],
  ['GET', `${O}/tools/slug/{slug}`, 'C', 200],
  ['GET', `${W}/tool-instances`, 'C', 200],
  ['POST', `${W}/tool-instances`, 'C', 201],
  ['GET', `${W}/tool-instances/{instance_id}`, 'C', 200],
  ['PUT', `${W}/tool-instances/{instance_id}`, 'C', 200],
  ['DELETE', `${W}/tool-instances/{instance_id}`, 'C', 204],
  ['POST', `${W}/tool-instances/{instance_id}/test`, 'C', 200],
  ['POST', `${W}/tool-instances/{instance_id}/toggle`, 'C', 200],
  ['POST', `${W}/tool-instances/{instance_id}/upgrade`, 'C', 200],
  ['GET', `${N}/artifacts`, 'C', 200],
  ['POST', `${N}/artifacts`, 'C', 201],
  ['POST', `${N}/artifacts/upload`, 'C', 201],
  ['GET', `${N}/artifacts/{artifact_id}`, 'C', 200],
  ['GET', `${N}/artifacts/{artifact_id}/download`, 'C', 200],
  ['PUT', `${N}/artifacts/{artifact_id}`, 'C', 200],
  ['DELETE', `${N}/artifacts/{artifact_id}`, 'C', 204],
  ['GET', `${N}/artifacts/{artifact_id}/versions`, 'C', 200],
  ['GET', `${N}/threads/{thread_id}/artifacts`, 'C', 200],
  ['POST', `${N}/artifacts/query`, 'C', 200],
  ['POST', `${N}/artifacts/{artifact_id}/promote`, 'C', 200],
  ['GET', `${W}/environments`, 'B', 200],
  ['POST', `${W}/environments`, 'B', 201],
  ['GET', `${W}/environments/{environment_id}`, 'B', 200],
  ['PUT', `${W}/environments/{environment_id}`, 'B', 200],
  ['DELETE', `${W}/environments/{environment_id}`, 'B', 200],
  ['POST', `${W}/environments/{environment_id}/deploy`, 'B', 200],
  ['DELETE', `${W}/environments/{environment_id}/deploy/{app_id}`, 'B', 200],
  ['GET', `${W}/environments/{environment_id}/deployments`, 'B', 200],
  ['GET', `${E}/entities`, 'C', 200],
  ['POST', `${E}/entities`, 'C', 201],
  ['GET', `${E}/entities/{entity_id}`, 'C', 200],
  ['PUT', `${E}/entities/{entity_id}`, 'C', 200],
  ['DELETE', `${E}/entities/{entity_id}`, 'C', 200],
  ['POST', `${E}/entities/relations`, 'C', 200],
  ['POST', `${E}/entities/{entity_id}/traverse`, 'C', 200],
  ['GET', `${O}/secrets`, 'C', 200],
  ['POST', `${O}/secrets`, 'C', 201],
  ['GET', `${O}/secrets/by-name/{name}`, 'C', 200],
  ['GET', `${O}/secrets/{secret_id}`, 'C', 200],
  ['PATCH', `${O}/secrets/{secret_id}`, 'C', 200],
  ['DELETE', `${O}/secrets/{secret_id}`, 'C', 204],
  ['POST', `${O}/secrets/{secret_id}/rotate`, 'C', 200],
  ['GET', `${O}/secrets/{secret_id}/versions`, 'C', 200],
  ['GET', `${O}/api-tokens`, 'B', 200],
  ['POST', `${O}/api-tokens`, 'B', 201],
  ['GET', `${O}/api-tokens/admin`, 'B', 200],
  ['DELETE', `${O}/api-tokens/{token_id}`, 'B', 204],
  ['DELETE', `${O}/api-tokens/admin/{token_id}`, 'B', 204],
  ['POST', `${O}/api-tokens/refresh`, 'B', 200],
  ['GET', `${O}/apps/{app_id}/tokens`, 'B', 200],
  ['POST', `${O}/apps/{app_id}/tokens`, 'B', 201],
  ['DELETE', `${O}/apps/{app_id}/tokens/{token_id}`, 'B', 204],
  ['GET', `${O}/model-catalog`, 'C', 200],
  ['POST', `${O}/model-catalog`, 'C', 201],
  ['GET', `${O}/model-catalog/{logical_model_id}`, 'C', 200],
  ['PATCH', `${O}/model-catalog/{logical_model_id}`, 'C', 200],
  ['DELETE', `${O}/model-catalog/{logical_model_id}`, 'C', 204],
  ['GET', `${O}/provider-accounts`, 'C', 200],
  ['POST', `${O}/provider-accounts`, 'C', 201],
  ['GET', `${O}/provider-accounts/{provider_account_id}`, 'C', 200],
  ['PATCH', `${O}/provider-accounts/{provider_account_id}`, 'C', 200],
  ['DELETE', `${O}/provider-accounts/{provider_account_id}`, 'C', 204],
  ['GET', `${W}/model-entitlements`, 'C', 200],
  ['POST', `${W}/model-entitlements`, 'C', 201],
  ['GET', `${W}/model-entitlements/{logical_model_id}`, 'C', 200],
  ['PATCH', `${W}/model-entitlements/{logical_model_id}`, 'C', 200],
  ['DELETE', `${W}/model-entitlements/{logical_model_id}`, 'C', 204],
  ['GET', `${N}/connections/requirements`, 'C', 200],
  ['POST', `${N}/connections/oauth/initiate`, 'C', 200],
  ['GET', `${N}/connections`, 'C', 200],
  ['POST', `${N}/connections`, 'C', 201],
  ['DELETE', `${N}/connections/{instance_id}`, 'C', 200],
  ['POST', `${W}/connections/oauth/initiate`, 'C', 200],
  ['POST', `${W}/connections/api-key`, 'C', 201],
  ['DELETE', `${W}/connections/{tool_instance_id}`, 'C', 200],
  ['POST', '/v1/connections/oauth/exchange', 'C', 200],
  ['GET', `${O}/recipes`, 'B', 200],
  ['GET', `${O}/recipes/{recipe_id}`, 'B', 200],
  ['GET', `${O}/analytics`, 'B', 200],
  ['GET', `${W}/analytics`, 'B', 200],
  ['GET', `${W}/analytics/resources`, 'B', 200],
  ['GET', `${W}/analytics/executions`, 'B', 200],
  ['GET', `${W}/analytics/executions/hourly`, 'B', 200],
  ['GET', `${W}/analytics/executions/daily`, 'B', 200],
  ['GET', `${W}/apps/{app_id}/analytics`, 'B', 200],
  ['GET', `${N}/analytics`, 'B', 200],
  ['GET', `${W}/analytics/actions`, 'B', 200],
  ['GET', `${W}/analytics/secrets`, 'B', 200],
  ['GET', `${W}/analytics/sources`, 'B', 200],
  ['GET', `${O}/activity`, 'B', 200],
  ['GET', `${O}/activity/summary`, 'B', 200],
  ['GET', `${W}/activity`, 'B', 200],
  ['GET', `${W}/activity/summary`, 'B', 200],
  ['GET', `${O}/users/{user_id}/activity`, 'B', 200],
  ['GET', `${O}/users/{user_id}/activity/summary`, 'B', 200],
  ['GET', `${W}/apps/{app_id}/activity`, 'B', 200],
  ['GET', `${W}/apps/{app_id}/endpoints/{endpoint_id}/activity`, 'B', 200],
  ['POST', `${W}/recipes/apply`, 'B', 200],
  ['POST', `${W}/apps/{app_id}/export-recipe`, 'B', 200],
  ['GET', `${W}/sync/stream`, 'B', 200],
  ['POST', `${W}/sync/presence/join`, 'B', 200],
  ['POST', `${W}/sync/presence/leave`, 'B', 200],
  ['POST', `${W}/sync/presence/viewing`, 'B', 200],
];

test('the routes of the spec are there, with their methods, paths, error sets and statuses, and no other', () => {
  const lines = (routes: readonly { method: string; path: string; errors: string; status: number }[]) =>
    routes.map(({ method, path, errors, status }) => `${method} ${path} ${errors} ${status}`).sort();
  const wanted = spec.map(([method, path, errors, status]) => ({ method, path, errors, status }));
  expect(lines(operations.filter(({ isAddition }) => !isAddition))).toEqual(lines(wanted));
  expect(spec).toHaveLength(153);
});

test('an addition takes no path of the spec', () => {
  const taken = new Set(spec.map(([method, path]) => `${method} ${path}`));
  for (const { method, path, isAddition } of operations)
    if (isAddition) expect(taken).not.toContain(`${method} ${path}`);
});

/** The fields of the spec, in any order. Copied by hand. */
const shapes = {
  User:
    'user_id email username full_name auth_provider avatar_url bio timezone locale default_workspace_id ' +
    'is_active is_verified roles preferences settings created_at updated_at last_login',
  Workspace:
    'workspace_id name description owner_id subscription_plan_id region storage_bucket bucket_status ' +
    'is_active tags created_at updated_at',
  Member: 'workspace_id user_id org_id role username email full_name avatar_url added_by created_at updated_at',
  TokenPair: 'access_token refresh_token token_type expires_in user',
  Refreshed: 'access_token refresh_token token_type expires_in',
  Switched: 'access_token token_type expires_in org_id',
  Config: 'allow_registration',
  InviteInfo: 'email valid',
  Users: 'total has_more next_cursor users',
  Workspaces: 'total has_more next_cursor workspaces',
  Members: 'members total',
  Environment:
    'environment_id workspace_id org_id name slug description created_by created_at updated_at ' +
    'is_default active_deployments status',
  Environments: 'total has_more next_cursor environments',
  EnvironmentChanged: 'message environment',
  Deployment: 'deployment_id environment_id app_id release_id previous_release_id action deployed_by deployed_at',
  Deployments: 'deployments total',
  Deployed: 'message deployment_id environment_id app_id release_id',
  Undeployed: 'message deployment_id',
  Tool:
    'tool_id name slug description short_description category version status icon_url documentation_url ' +
    'connection_service_name author created_at updated_at tags supported_actions supported_step_types is_builtin ' +
    'config_schema credential_schema action_schemas mcp_functions custom_action_type is_mcp_compatible ' +
    'current_schema_version min_schema_version schema_changelog supports_connection',
  ToolInstance:
    'instance_id tool_id workspace_id namespace_id name description created_by created_at updated_at last_used_at ' +
    'usage_count is_active configuration has_credentials credential_refs credential_fields custom_action_parameters ' +
    'action_defaults auth_config custom_actions auth_mode connection_status connection_credentials ' +
    'mcp_description_override mcp_action_filter mcp_action_descriptions mcp_max_calls_per_turn ' +
    'mcp_requires_confirmation mcp_parameter_overrides schema_version upgrade_available latest_schema_version ' +
    'schema_deprecated tool_name tool_slug tool_category tool_icon_url supported_step_types ' +
    'effective_action_schemas tool_config_schema',
  ConnectionCredentials: 'client_id client_secret_vault_id callback_url scopes_override',
  ConfigField:
    'name display_name type description placeholder widget required default options validation widget_options',
  ToolInstances: 'total has_more next_cursor instances',
  Tools: 'total has_more next_cursor tools',
  CustomActionSchemas: 'schemas custom_rest_schema data_transform_schema',
  Artifact:
    'artifact_id workspace_id namespace_id thread_id name description created_by created_at updated_at ' +
    'artifact_type version root_artifact_id is_latest replaced_by_version content content_preview content_text ' +
    'file_name mime_type summary size_bytes has_file keywords tags metadata source source_execution_id ' +
    'source_step_id source_tool scope status ttl_seconds expires_at is_pinned is_expired is_indexed indexed_at ' +
    'index_collection index_error embedding_model_id index_attempts chunk_count promoted_to_source_id',
  Artifacts: 'total has_more next_cursor artifacts',
  Secret:
    'secret_id scope workspace_id organization_id namespace_id environment_id name secret_type status ' +
    'description expires_at last_rotated_at last_accessed_at created_by created_at updated_at ' +
    'vault_version rotation_reminder_days access_count is_expired needs_rotation',
  Secrets: 'total has_more next_cursor secrets',
  SecretVersions: 'secret_id current_version versions',
  SecretVersion: 'version created_at value',
  Token:
    'token_id token_type owner_type owner_id org_id name description prefix created_by_user_id issued_at ' +
    'expires_at last_used_at revoked_at revoked_reason scopes permissions workspace_ids namespace_ids ' +
    'environment_ids endpoint_paths rate_limit_rps rate_limit_burst',
  Tokens: 'tokens',
  IssuedToken: 'token plaintext_token refresh_token_plaintext',
  Model:
    'logical_model_id org_id name description model_type status status_reason created_by created_at ' +
    'updated_at capabilities default_temperature default_top_p default_max_tokens fallback_chain enabled ' +
    'healthy_targets_count total_targets_count tags targets constraints',
  ModelTarget:
    'provider_account_id model_name last_failure last_success weight priority enabled ' +
    'consecutive_failures temperature_override max_tokens_override',
  ModelConstraints:
    'data_residency require_audit_log max_cost_per_1k_tokens max_latency_ms allow_caching cache_ttl_seconds',
  Models: 'total has_more next_cursor models',
  ProviderAccount:
    'provider_account_id org_id name description provider_type region data_residency credentials_ref ' +
    'status status_reason routing_mode bridge_id bridge_endpoint_name last_health_check created_by ' +
    'created_at updated_at enabled tags quota_policy rate_limit_policy',
  IdentityProvider:
    'idp_id org_id name protocol saml_config oidc_config verified_domains group_mappings group_attribute ' +
    'default_role_id auto_create_users auto_update_profile is_active created_at updated_at created_by',
  SamlConfig: 'entity_id sso_url slo_url certificate sign_authn_requests name_id_format',
  OidcConfig: 'client_id client_secret_ref discovery_url scopes',
  IdentityProviders: 'total has_more next_cursor identity_providers',
  QuotaPolicy: 'max_tokens_per_month max_requests_per_month current_month_tokens current_month_requests usage_period',
  RateLimitPolicy:
    'requests_per_second requests_per_minute input_tokens_per_minute output_tokens_per_minute ' +
    'max_concurrency burst_size queue_policy queue_timeout_seconds',
  ProviderAccounts: 'total has_more next_cursor accounts',
  Entitlement:
    'entitlement_id workspace_id org_id logical_model_id last_used_at granted_by created_at updated_at ' +
    'workspace_limits allowed_step_types allowed_endpoints allowed_purposes enabled request_count ' +
    'total_tokens',
  Entitlements: 'total has_more next_cursor entitlements',
  Entity:
    'entity_id workspace_id namespace_id name entity_type description last_referenced_at created_at updated_at ' +
    'aliases relations source_memory_ids tags importance mention_count metadata is_indexed',
  Entities: 'total has_more next_cursor entities',
  Traversal: 'root connected_entities linked_memories depth_reached',
  Message: 'message',
  Recipes: 'recipes total',
  RecipeSummary: 'id name description category icon tags needs_embedding',
  AppliedRecipe: 'message recipe_id app_id augmentation_id endpoint_id namespace_id stage_ids step_ids',
  ExportedRecipe: 'recipe warnings',
  Recipe: 'id name description category icon tags needs_embedding version requirements definition parameters',
};
type Shape = keyof typeof shapes;

describe('the shapes of the spec', () => {
  let app: TestApp;
  let world: World;
  beforeAll(async () => {
    app = await startTestApp();
    world = await createWorld(app, { withResources: false });
  });
  afterAll(() => app.close());

  const hasShape = (value: unknown, shape: Shape, more: string[] = []) =>
    expect(Object.keys(value as object).sort()).toEqual([...shapes[shape].split(' '), ...more].sort());
  const get = <Body = Record<string, unknown>>(url: string, role: 'owner' | 'viewer' = 'owner') =>
    expectOk<Body>(app, { url, headers: world.as(role) });
  const send = <Body = Record<string, unknown>>(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    payload?: object,
  ) => expectOk<Body>(app, { method, url, headers: world.as('owner'), ...(payload ? { payload } : {}) });

  test('User, with has_password only in the profile; private fields are empty for others', async () => {
    for (const url of ['/v1/auth/me', '/v1/users/me', `/v1/users/${world.accounts.owner.userId}`])
      hasShape(await get(url), 'User');
    const profile = await get('/v1/auth/me/profile');
    hasShape(profile, 'User', ['has_password']);
    expect(profile).toMatchObject({
      has_password: true,
      auth_provider: 'local',
      is_active: true,
      is_verified: true,
      roles: ['owner'],
    });
    expect(profile.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const settings = profile.settings as Record<string, unknown>;
    expect(settings).toEqual({
      current_org_id: world.ids.org_id,
      organizations: [
        { org_id: world.ids.org_id, name: expect.stringContaining(world.marker) as string, role: 'owner' },
      ],
    });
    expect(await get(`/v1/users/${world.accounts.owner.userId}`, 'viewer')).toMatchObject({
      preferences: {},
      settings: {},
    });
  });

  test('Identity provider, of both protocols', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/identity-providers`;
    const saml = await send('POST', url, {
      name: 'S',
      protocol: 'saml',
      saml_config: { entity_id: 'e', sso_url: 'https://idp.test/sso', certificate: certificate.cert },
    });
    const oidc = await send('POST', url, {
      name: 'O',
      protocol: 'oidc',
      oidc_config: { client_id: 'c', discovery_url: 'https://idp.test' },
    });
    hasShape(saml.saml_config, 'SamlConfig');
    hasShape(oidc.oidc_config, 'OidcConfig');
    for (const { idp_id } of [saml, oidc]) {
      hasShape(await get(`${url}/${idp_id as string}`), 'IdentityProvider');
      hasShape(await send('PUT', `${url}/${idp_id as string}`, {}), 'IdentityProvider');
    }
    hasShape(await get(url), 'IdentityProviders');
    for (const { idp_id } of [saml, oidc]) expect(await send('DELETE', `${url}/${idp_id as string}`)).toBeNull();
  });

  test('Token pair, refresh and switch', async () => {
    const pair = await send<Record<string, unknown>>('POST', '/v1/auth/login', {
      username: world.username,
      password: PASSWORD,
    });
    hasShape(pair, 'TokenPair');
    hasShape(pair.user, 'User');
    expect(pair).toMatchObject({ token_type: 'bearer', expires_in: 1800 });
    const registered = await send<Record<string, unknown>>('POST', '/v1/auth/register', {
      email: 'shape@example.test',
      username: 'shape',
      password: PASSWORD,
    });
    hasShape(registered, 'TokenPair');
    const refreshed = await send('POST', '/v1/auth/refresh', { refresh_token: pair.refresh_token as string });
    hasShape(refreshed, 'Refreshed');
    const switched = await send('POST', '/v1/auth/switch-org', { org_id: world.ids.org_id });
    hasShape(switched, 'Switched');
    expect(switched).toMatchObject({ token_type: 'bearer', org_id: world.ids.org_id });
  });

  test('public configuration and invitation', async () => {
    expect(await expectOk(app, { url: '/v1/auth/config' })).toEqual({ allow_registration: true });
    expect(await expectOk(app, { url: '/v1/auth/invite-info?token=unknown' })).toEqual({ email: '', valid: false });
  });

  test('Workspace and its list', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces`;
    const made = await send('POST', url, { organization_id: world.ids.org_id, name: 'Plain' });
    hasShape(made, 'Workspace');
    expect(made).toMatchObject({
      description: null,
      bucket_status: 'pending',
      region: 'default',
      subscription_plan_id: 'community',
      is_active: true,
      tags: [],
      owner_id: world.accounts.owner.userId,
    });
    hasShape(await get(`${url}/${made.workspace_id as string}`), 'Workspace');
    hasShape(await send('PUT', `${url}/${made.workspace_id as string}`, {}), 'Workspace');
    const list = await get<{ workspaces: unknown[] }>(url);
    hasShape(list, 'Workspaces');
    hasShape(list.workspaces[0], 'Workspace');
    expect(await send('DELETE', `${url}/${made.workspace_id as string}`)).toEqual({
      message: 'Workspace deleted successfully',
    });
  });

  test('absent and null stay different all the way to the row', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces`;
    const { workspace_id: id } = await send('POST', url, {
      organization_id: world.ids.org_id,
      name: 'Kept',
      description: 'kept',
      tags: ['kept'],
    });
    const before = await get(`${url}/${id as string}`);
    const unchanged = await send('PUT', `${url}/${id as string}`, {});
    expect({ ...unchanged, updated_at: '', bucket_status: '' }).toEqual({
      ...before,
      updated_at: '',
      bucket_status: '',
    });
    expect(await send('PUT', `${url}/${id as string}`, { description: null })).toMatchObject({
      name: 'Kept',
      description: null,
      tags: ['kept'],
    });
  });

  test('a null where nothing can be cleared is reported with all the rest', async () => {
    const answer = await app.server.inject({
      method: 'PUT',
      url: `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}`,
      headers: world.as('owner'),
      payload: { name: null, tags: [''] },
    });
    expect([answer.statusCode, answer.json()]).toEqual([
      422,
      {
        detail: [
          { type: 'string_type', loc: ['body', 'name'], msg: 'Input should be a valid string', input: null },
          {
            type: 'string_too_short',
            loc: ['body', 'tags', 0],
            msg: 'String should have at least 1 character',
            input: '',
            ctx: { min_length: 1 },
          },
        ],
      },
    ]);
  });

  test('Member and its list', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/members`;
    const added = await send('POST', url, { user_id: world.guest.userId });
    hasShape(added, 'Member');
    expect(added).toMatchObject({ role: 'member', added_by: world.accounts.owner.userId, org_id: world.ids.org_id });
    hasShape(await send('PATCH', `${url}/${world.guest.userId}`, { role: 'viewer' }), 'Member');
    const list = await get<{ members: unknown[]; total: number }>(url);
    hasShape(list, 'Members');
    expect(list.members).toHaveLength(list.total);
    hasShape(list.members[0], 'Member');
    const removed = await app.server.inject({
      method: 'DELETE',
      url: `${url}/${world.guest.userId}`,
      headers: world.as('owner'),
    });
    expect([removed.statusCode, removed.body]).toEqual([204, '']);
  });

  test('Users in a workspace', async () => {
    const list = await get<{ users: unknown[] }>(`/v1/users?workspace_id=${world.ids.workspace_id}`);
    hasShape(list, 'Users');
    hasShape(list.users[0], 'User');
  });

  test('Environment, deployments and what deploying answers', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}`;
    const { app_id } = await send('POST', `${url}/apps`, { name: 'Shapes' });
    const { release_id } = await send('POST', `${url}/apps/${app_id as string}/releases`, {});
    const made = await send<{ environment: Record<string, unknown> }>('POST', `${url}/environments`, {
      name: 'Production',
      slug: 'production',
    });
    hasShape(made, 'EnvironmentChanged');
    hasShape(made.environment, 'Environment');
    expect(made.environment).toMatchObject({ is_default: true, active_deployments: {}, status: 'active' });
    const one = `${url}/environments/${made.environment.environment_id as string}`;
    hasShape(await send('PUT', one, {}), 'EnvironmentChanged');
    hasShape(await send('POST', `${one}/deploy`, { app_id, release_id }), 'Deployed');
    const shown = await get(one);
    hasShape(shown, 'Environment');
    expect(shown.active_deployments).toEqual({ [app_id as string]: release_id });
    hasShape(await send('DELETE', `${one}/deploy/${app_id as string}`), 'Undeployed');
    const deployments = await get<{ deployments: unknown[]; total: number }>(`${one}/deployments`);
    hasShape(deployments, 'Deployments');
    expect(deployments.total).toBe(2);
    hasShape(deployments.deployments[0], 'Deployment');
    const list = await get<{ environments: unknown[] }>(`${url}/environments`);
    hasShape(list, 'Environments');
    hasShape(list.environments[0], 'Environment');
    expect(await send('DELETE', one)).toEqual({ message: 'Environment deleted successfully' });
  });

  test('Secret, with its value only where it is asked for, and its versions', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/secrets`;
    const made = await send('POST', url, { name: 'shape', secret_type: 'token', value: { token: 'shown' } });
    hasShape(made, 'Secret');
    expect(made).toMatchObject({
      scope: 'organization',
      organization_id: world.ids.org_id,
      workspace_id: null,
      status: 'active',
      vault_version: 1,
      access_count: 0,
      is_expired: false,
      needs_rotation: false,
    });
    const one = `${url}/${made.secret_id as string}`;
    hasShape(await get(one), 'Secret');
    for (const path of [one, `${url}/by-name/shape`]) {
      const revealed = await get(`${path}?include_value=true`);
      hasShape(revealed, 'Secret', ['value']);
      expect(revealed.value).toEqual({ token: 'shown' });
    }
    hasShape(await send('PATCH', one, {}), 'Secret');
    hasShape(await send('POST', `${one}/rotate`, { value: { token: 'newer' } }), 'Secret');
    const history = await get<{ versions: unknown[] }>(`${one}/versions`);
    hasShape(history, 'SecretVersions');
    hasShape(history.versions[0], 'SecretVersion');
    const list = await get<{ secrets: unknown[] }>(url);
    hasShape(list, 'Secrets');
    hasShape(list.secrets[0], 'Secret');
  });

  test('API tokens and app tokens', async () => {
    const { app_id } = await send('POST', `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/apps`, {
      name: 'With tokens',
    });
    for (const [path, type] of [
      ['api-tokens', 'pat'],
      [`apps/${app_id as string}/tokens`, 'app'],
    ] as const) {
      const url = `/v1/orgs/${world.ids.org_id}/${path}`;
      const issued = await send<{ token: Record<string, unknown>; refresh_token_plaintext: string }>('POST', url, {
        name: 'shape',
      });
      hasShape(issued, 'IssuedToken');
      hasShape(issued.token, 'Token');
      expect(issued.token).toMatchObject({ token_type: type, scopes: [], permissions: [], revoked_at: null });
      const list = await get<{ tokens: unknown[] }>(url);
      hasShape(list, 'Tokens');
      hasShape(list.tokens[0], 'Token');
      const refreshed = await expectOk<{ token: unknown }>(app, {
        method: 'POST',
        url: `/v1/orgs/${world.ids.org_id}/api-tokens/refresh`,
        payload: { refresh_token: issued.refresh_token_plaintext },
      });
      hasShape(refreshed, 'IssuedToken');
      hasShape(refreshed.token, 'Token');
    }
    const all = await get<{ tokens: unknown[] }>(`/v1/orgs/${world.ids.org_id}/api-tokens/admin`);
    hasShape(all, 'Tokens');
    hasShape(all.tokens[0], 'Token');
  });

  test('Logical model, provider account and entitlement, with nested objects', async () => {
    const url = `/v1/orgs/${world.ids.org_id}`;
    const account = await send('POST', `${url}/provider-accounts`, {
      name: 'Account',
      provider_type: 'openai',
      credentials_ref: 'external:somewhere',
    });
    hasShape(account, 'ProviderAccount');
    hasShape(account.quota_policy, 'QuotaPolicy');
    hasShape(account.rate_limit_policy, 'RateLimitPolicy');
    expect(account).toMatchObject({
      routing_mode: 'direct',
      rate_limit_policy: {
        requests_per_second: 1,
        requests_per_minute: 1,
        input_tokens_per_minute: 1,
        output_tokens_per_minute: 1,
        max_concurrency: 10,
        burst_size: 10,
        queue_policy: 'wait',
        queue_timeout_seconds: 300,
      },
    });
    const model = await send<Record<string, unknown> & { targets: unknown[] }>('POST', `${url}/model-catalog`, {
      logical_model_id: 'shape/one',
      name: 'Model',
      targets: [{ provider_account_id: account.provider_account_id, model_name: 'm-1' }],
    });
    hasShape(model, 'Model');
    hasShape(model.targets[0], 'ModelTarget');
    hasShape(model.constraints, 'ModelConstraints');
    expect(model.targets[0]).toMatchObject({ weight: 100, priority: 1, enabled: true });
    hasShape(await get(`${url}/model-catalog/shape%2Fone`), 'Model');
    hasShape(await send('PATCH', `${url}/model-catalog/shape%2Fone`, {}), 'Model');
    hasShape(await get(`${url}/provider-accounts/${account.provider_account_id as string}`), 'ProviderAccount');
    const entitlements = `${url}/workspaces/${world.ids.workspace_id}/model-entitlements`;
    const granted = await send('POST', entitlements, { logical_model_id: 'shape/one' });
    hasShape(granted, 'Entitlement');
    expect(granted).toMatchObject({ enabled: true, request_count: 0, total_tokens: 0, workspace_limits: {} });
    hasShape(await send('PATCH', `${entitlements}/shape%2Fone`, {}), 'Entitlement');
    const models = await get<{ models: unknown[] }>(`${url}/model-catalog`);
    hasShape(models, 'Models');
    hasShape(models.models[0], 'Model');
    const accounts = await get<{ accounts: unknown[] }>(`${url}/provider-accounts`);
    hasShape(accounts, 'ProviderAccounts');
    hasShape(accounts.accounts[0], 'ProviderAccount');
    const list = await get<{ entitlements: unknown[] }>(entitlements);
    hasShape(list, 'Entitlements');
    hasShape(list.entitlements[0], 'Entitlement');
  });

  test('tools', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/tools`;
    const tool = await send('POST', url, { name: 'Shape', slug: 'shape', description: 'Shape.' });
    hasShape(tool, 'Tool');
    expect(tool).toMatchObject({
      is_builtin: false,
      custom_action_type: 'none',
      is_mcp_compatible: false,
      current_schema_version: 1,
      min_schema_version: 1,
      schema_changelog: {},
      supports_connection: false,
      config_schema: [],
    });
    hasShape(await get(`${url}/${tool.tool_id as string}`), 'Tool');
    hasShape(await get(`${url}/slug/shape`), 'Tool');
    hasShape(await send('PUT', `${url}/${tool.tool_id as string}`, {}), 'Tool');
    hasShape(await get(`${url}/custom-action-schemas`), 'CustomActionSchemas');
    const list = await get<{ tools: unknown[] }>(url);
    hasShape(list, 'Tools');
    hasShape(list.tools.at(-1), 'Tool');
  });

  test('recipes', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/recipes`;
    const list = await get<{ recipes: unknown[] }>(url);
    hasShape(list, 'Recipes');
    hasShape(list.recipes[0], 'RecipeSummary');
    hasShape(await get(`${url}/doc-qa`), 'Recipe');
    const home = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}`;
    const made = await send('POST', `${home}/recipes/apply`, { recipe_id: 'doc-qa' });
    hasShape(made, 'AppliedRecipe');
    hasShape(await send('POST', `${home}/apps/${made.app_id as string}/export-recipe`, {}), 'ExportedRecipe');
  });

  test('tool instances', async () => {
    const url = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/tool-instances`;
    const configSchema = [{ name: 'address', type: 'string' }];
    const of = { name: 'Instances', slug: 'instances', description: 'Shape.', config_schema: configSchema };
    const { tool_id } = await send('POST', `/v1/orgs/${world.ids.org_id}/tools`, of);
    const instance = await send('POST', url, { tool_id, name: 'Shape' });
    hasShape(instance, 'ToolInstance');
    hasShape(instance.connection_credentials, 'ConnectionCredentials');
    hasShape((instance.tool_config_schema as unknown[])[0], 'ConfigField');
    expect(instance).toMatchObject({
      auth_mode: 'vault',
      mcp_requires_confirmation: false,
      schema_version: 1,
      upgrade_available: false,
      schema_deprecated: false,
    });
    const one = `${url}/${instance.instance_id as string}`;
    hasShape(await get(one), 'ToolInstance');
    hasShape(await send('PUT', one, {}), 'ToolInstance');
    hasShape(await send('POST', `${one}/toggle?is_active=false`, {}), 'ToolInstance');
    expect(Object.keys(await send('POST', `${one}/test`, {}))).toEqual(['success', 'message', 'details', 'latency_ms']);
    const upgraded = await send('POST', `${one}/upgrade`, {});
    expect(upgraded).toMatchObject({ previous_version: 1, new_version: 1, migration_applied: false, changelog: '' });
    const list = await get<{ instances: unknown[] }>(url);
    hasShape(list, 'ToolInstances');
    hasShape(list.instances[0], 'ToolInstance');
  });

  test('Artifact, its list, its versions and its promotion', async () => {
    const home = `/v1/orgs/${world.ids.org_id}/workspaces/${world.ids.workspace_id}/namespaces/default`;
    const { thread_id } = await send('POST', `${home}/threads`, {});
    const url = `${home}/artifacts`;
    const made = await send('POST', url, { name: 'Shape', content: 'one', thread_id });
    hasShape(made, 'Artifact');
    expect(made).toMatchObject({
      artifact_type: 'text',
      version: 1,
      root_artifact_id: made.artifact_id,
      is_latest: true,
      replaced_by_version: null,
      has_file: false,
      scope: 'thread',
      status: 'active',
      source: 'api',
      is_pinned: false,
      is_expired: false,
      is_indexed: false,
      index_attempts: 0,
      chunk_count: 0,
    });
    const one = `${url}/${made.artifact_id as string}`;
    hasShape(await get(one), 'Artifact');
    const changed = await send('PUT', one, { content: 'two' });
    hasShape(changed, 'Artifact');
    expect(changed).toMatchObject({ artifact_id: made.artifact_id, version: 2, content: 'two' });
    const versions = await get<{ versions: Record<string, unknown>[] }>(`${one}/versions`);
    expect(versions).toMatchObject({ artifact_id: made.artifact_id, current_version: 2, total: 2 });
    expect(versions.versions.map(({ version }) => version)).toEqual([2, 1]);
    hasShape(versions.versions[1], 'Artifact');
    for (const list of [url, `${home}/threads/${thread_id as string}/artifacts`]) {
      const listed = await get<{ artifacts: unknown[] }>(list);
      hasShape(listed, 'Artifacts');
      hasShape(listed.artifacts[0], 'Artifact');
    }
    const promoted = await send('POST', `${one}/promote`, {});
    expect(promoted).toEqual({
      artifact_id: made.artifact_id,
      promoted_to_source_id: expect.stringMatching(/^src_/) as string,
      status: 'promoted',
    });
    expect(await send('POST', `${one}/promote`, { name: 'again' })).toEqual(promoted);
    const gone = await app.server.inject({ method: 'DELETE', url: one, headers: world.as('owner') });
    expect([gone.statusCode, gone.body]).toEqual([204, '']);
  });

  test('/openapi.json has exactly the operations of the spec, beside the additions', async () => {
    type Item = { 'x-addition'?: true };
    const { paths } = (await app.server.inject({ url: '/openapi.json' })).json<{
      paths: Record<string, Record<string, Item>>;
    }>();
    const described = Object.entries(paths).flatMap(([path, items]) =>
      Object.entries(items).flatMap(([method, item]) =>
        item['x-addition'] ? [] : [`${method.toUpperCase()} ${path}`],
      ),
    );
    expect(described.sort()).toEqual(spec.map(([method, path]) => `${method} ${path}`).sort());
  });

  test('untyped operations answer the text null', async () => {
    for (const [url, payload] of [
      ['/v1/auth/resend-verification', { email: 'nobody@example.test' }],
      ['/v1/auth/forgot-password', { email: 'nobody@example.test' }],
    ] as const) {
      const answer = await app.server.inject({ method: 'POST', url, payload });
      expect([answer.statusCode, answer.body, answer.headers['content-type']]).toEqual([
        200,
        'null',
        'application/json; charset=utf-8',
      ]);
    }
  });
});
