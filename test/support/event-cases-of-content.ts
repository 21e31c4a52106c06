import {
  called,
  connecting,
  deploy,
  type EventCase,
  give,
  makeAt,
  makeRelease,
  ownModel,
  promotedArtifact,
  reporting,
  type Scene,
  storeSecret,
  unique,
  usual,
  WORKSPACE,
} from './event-scenes.ts';
import { makeInstance, makeMarkedInstance } from './tool-instance.ts';

/** Starts to connect an instance; of one whose connection is broken, the connection is made by the path `part`. */
const initiating = (part: string): readonly EventCase[] => [
  usual('of an instance with one that works'),
  { when: 'of an instance without one', emits: ['connection.created'], prepare: (scene) => connecting(scene) },
  {
    when: 'of an instance that must be authorized again',
    emits: ['connection.updated'],
    prepare: (scene) => connecting(scene, part),
  },
];

const replacing: readonly EventCase[] = [
  usual('of an instance with one', ['connection.updated']),
  { when: 'of an instance without one', emits: ['connection.created'], prepare: (scene) => connecting(scene) },
];

/** Restores a version of an artifact that has two. */
async function versioned({ owner, world: { ids }, parts }: Scene, version: number): Promise<void> {
  const url = `${owner.home}/namespaces/${ids.namespace_id!}/artifacts`;
  const { artifact_id } = await called(owner, 'POST', url, { name: 'notes', content: 'first' });
  await called(owner, 'PUT', `${url}/${String(artifact_id)}`, { content: 'second' });
  parts.params.artifact_id = String(artifact_id);
  give(parts, { version });
}

/** An augmentation of the app of the world with one step. */
const withStep = ({ owner, world: { ids } }: Scene, step: object) =>
  called(owner, 'POST', `${owner.home}/apps/${ids.app_id!}/augmentations`, {
    name: 'Uses',
    stages: [{ name: 'Say', steps: [{ name: 'Ask', step_type: 'tool', ...step }] }],
  });

/** Runs an action that sends nothing, or one whose provider cannot be reached. */
const executing: readonly EventCase[] = [
  usual('of an action that sends nothing', ['tool_action.executed']),
  {
    when: 'of an action whose target is not called',
    emits: ['tool_action.failed'],
    prepare: async (scene) => {
      const { owner, parts } = scene;
      const { tool_id } = await called(owner, 'POST', `/v1/orgs/${owner.orgId}/tools`, {
        name: 'Inside',
        slug: `inside-${unique()}`,
        description: 'Leads inside.',
        action_schemas: [{ name: 'get', url_template: 'https://10.0.0.1/' }],
      });
      const made = await called(owner, 'POST', `${owner.home}/tool-instances`, { tool_id, name: 'Inside' });
      parts.params.instance_id = String(made.instance_id);
      parts.body = { action: 'get' };
    },
  },
];

/** Requests of mutations of what a workspace or an organization contains. */
export const casesOfContent: Record<string, readonly EventCase[]> = {
  createArtifact: [
    usual('of its own', ['artifact.created']),
    {
      when: 'as the next version of another',
      emits: ['artifact.updated', 'artifact.version_created'],
      record: 'update artifact',
      prepare: async ({ world, parts }) => give(parts, { root_artifact_id: world.ids.artifact_id }),
    },
  ],
  finishUpload: [
    {
      when: 'as the next version of another',
      emits: ['artifact.updated', 'artifact.version_created'],
      record: 'update artifact',
    },
    {
      when: 'of its own',
      emits: ['artifact.created'],
      prepare: async ({ parts }) => give(parts, { root_artifact_id: undefined }),
    },
  ],
  updateArtifact: [
    usual('with another content', ['artifact.version_created']),
    {
      when: 'with another name',
      prepare: async ({ parts }) => {
        parts.body = { name: 'renamed' };
      },
    },
  ],
  restoreArtifactVersion: [
    {
      when: 'of an old version',
      emits: ['artifact.version_created'],
      prepare: async (scene) => versioned(scene, 1),
    },
    { when: 'of the latest version', prepare: async (scene) => versioned(scene, 2) },
  ],
  deleteArtifact: [
    usual('without a source'),
    {
      when: 'with the source that it was promoted to',
      emits: ['source.deleted'],
      prepare: async (scene) => {
        scene.parts.params.artifact_id = (await promotedArtifact(scene)).artifact_id;
      },
    },
  ],
  deleteSource: [
    usual('of no artifact'),
    {
      when: 'of an artifact',
      emits: ['artifact.updated'],
      prepare: async (scene) => {
        scene.parts.params.source_id = (await promotedArtifact(scene)).source_id;
      },
    },
  ],
  deleteNamespace: [
    usual('without content'),
    {
      when: 'with a promoted artifact, a connection and a secret',
      emits: ['artifact.deleted', 'source.deleted', 'connection.deleted', 'secret.deleted'],
      prepare: async (scene) => {
        const { owner } = scene;
        const namespaceId = scene.parts.params.namespace_id!;
        await promotedArtifact(scene, namespaceId);
        await storeSecret(scene, { namespace_id: namespaceId });
        const tool_instance_id = await makeInstance(owner, { namespaceId });
        const url = `${owner.home}/namespaces/${namespaceId}/connections`;
        await called(owner, 'POST', url, { tool_instance_id, api_key: 'key' });
      },
    },
    {
      when: 'with a tool instance that a step uses, by force',
      emits: ['augmentation.updated'],
      prepare: async (scene) => {
        const namespaceId = scene.parts.params.namespace_id!;
        scene.parts.query.force = 'true';
        await withStep(scene, { tool_instance_id: await makeInstance(scene.owner, { namespaceId }) });
      },
    },
  ],
  deleteApp: [
    usual('that is not deployed'),
    {
      when: 'that is deployed',
      emits: ['deployment.removed'],
      prepare: async (scene) => {
        const appId = scene.parts.params.app_id!;
        await deploy(scene, scene.world.ids.environment_id!, appId, await makeRelease(scene, appId));
      },
    },
  ],
  deleteEnvironment: [
    usual('without content'),
    {
      when: 'with a deployment and a secret',
      emits: ['deployment.removed', 'secret.deleted'],
      prepare: async (scene) => {
        const environmentId = scene.parts.params.environment_id!;
        const { app_id, release_id } = scene.world.ids;
        await deploy(scene, environmentId, app_id!, release_id!);
        await storeSecret(scene, { environment_id: environmentId });
      },
    },
  ],
  deployRelease: [
    usual('of what was not replaced', ['deployment.created']),
    {
      when: 'of what another one had replaced',
      emits: ['deployment.rolled_back'],
      prepare: async (scene) => {
        const { app_id, environment_id, release_id } = scene.world.ids;
        await deploy(scene, environment_id!, app_id!, release_id!);
        await deploy(scene, environment_id!, app_id!, await makeRelease(scene, app_id!));
      },
    },
  ],
  reportExecution: [
    usual('of a run that begins', ['execution.started']),
    {
      when: 'of a run that is over already',
      emits: ['execution.started', 'execution.stage_completed', 'execution.completed'],
      prepare: async ({ parts }) =>
        give(parts, { execution_id: unique(), status: 'completed', stages_completed: 1, total_stages: 1 }),
    },
    {
      when: 'of a run that has failed',
      emits: ['execution.failed'],
      prepare: async ({ owner, parts }) => {
        give(parts, { execution_id: unique(), status: 'running' });
        await called(owner, 'POST', `${owner.home}/executions`, parts.body as object);
        give(parts, { status: 'failed', error: 'It did not work.' });
      },
    },
  ],
  resolveEntity: [
    usual('of a new one', ['entity.created']),
    {
      when: 'of one that is there',
      prepare: async ({ owner, world, parts }) => {
        const { workspace_id, app_id, namespace_id } = world.ids;
        const home = `/v1/orgs/${owner.orgId}/workspaces/${workspace_id}/apps/${app_id}/namespaces/${namespace_id}`;
        give(parts, { name: unique(), entity_type: 'other' });
        await called(owner, 'POST', `${home}/entities`, parts.body as object);
      },
    },
  ],
  deleteToolInstance: [
    usual('with a connection', ['connection.deleted']),
    {
      when: 'without a connection',
      prepare: async ({ app, world, parts }) => {
        parts.params.instance_id = await makeMarkedInstance(app, world);
      },
    },
    {
      when: 'that a step uses, by force',
      emits: ['augmentation.updated'],
      prepare: async (scene) => {
        const instance = await makeMarkedInstance(scene.app, scene.world);
        scene.parts.params.instance_id = instance;
        scene.parts.query.force = 'true';
        await withStep(scene, { tool_instance_id: instance });
      },
    },
  ],
  mapMissingParts: [
    {
      when: 'with nothing to map',
      prepare: async ({ parts }) => {
        parts.body = {};
      },
    },
    {
      when: 'with an instance for a step',
      emits: ['augmentation.updated'],
      prepare: async (scene) => {
        const slug = `theirs-${unique()}`;
        await withStep(scene, { tool_slug: slug });
        scene.parts.body = { tools: { [slug]: scene.world.ids.tool_instance_id } };
      },
    },
    {
      when: 'with a secret for all texts',
      emits: ['app.updated', 'augmentation.updated', 'endpoint.updated', 'action.updated'],
      prepare: async (scene) => {
        const { owner, parts } = scene;
        const name = `later ${unique()}`;
        const secret = { name, secret_type: 'token', value: { token: 'x' } };
        await called(owner, 'POST', `/v1/orgs/${owner.orgId}/secrets`, secret);
        const text = { key: '{{secret.theirs}}' };
        const { app_id } = await called(owner, 'POST', `${owner.home}/apps`, { name: 'Lacks', metadata: text });
        const url = `${owner.home}/apps/${String(app_id)}`;
        const made = await called(owner, 'POST', `${url}/augmentations`, { name: 'Lacks', metadata: text });
        const runs = { name: 'Lacks', augmentation_id: made.augmentation_id };
        await called(owner, 'POST', `${url}/endpoints`, { ...runs, path: '/lacks', metadata: text });
        await called(owner, 'POST', `${url}/actions`, { ...runs, input: text });
        parts.params.app_id = String(app_id);
        parts.body = { secrets: { theirs: name } };
      },
    },
  ],
  initiateNamespaceConnection: initiating('namespaces/{namespace_id}/connections'),
  initiateWorkspaceConnection: initiating('connections/api-key'),
  executeToolAction: executing,
  executeNamespaceToolAction: executing,
  createNamespaceConnection: replacing,
  createWorkspaceConnection: replacing,
  deleteLogicalModel: [
    usual('that nobody uses'),
    {
      when: 'with an entitlement, in the fallback chain of another',
      emits: ['model_entitlement.deleted', 'model.updated'],
      prepare: async (scene) => {
        const { owner, parts } = scene;
        const { logical_model_id } = parts.params;
        await makeAt(scene, `${WORKSPACE}/model-entitlements`, { logical_model_id: logical_model_id! });
        const other = { logical_model_id: `other-${unique()}`, name: 'Other', fallback_chain: [logical_model_id] };
        await called(owner, 'POST', `/v1/orgs/${owner.orgId}/model-catalog`, other);
      },
    },
  ],
  reportModelUsage: [
    usual('of a request that says nothing of the account'),
    {
      when: 'of the first success',
      emits: ['provider_account.updated', 'model.updated'],
      prepare: reporting('success'),
    },
    {
      when: 'of refused credentials',
      emits: ['provider_account.degraded', 'model.updated'],
      prepare: reporting('success', 'auth_failure'),
    },
  ],
  updateProviderAccount: [
    usual('without models'),
    {
      when: 'with a model, and switched off',
      emits: ['model.updated'],
      prepare: async (scene) => {
        const { usage, report } = await ownModel(scene);
        await called(scene.owner, 'POST', usage, { ...report, outcome: 'success' });
        scene.parts.params.provider_account_id = report.provider_account_id;
        scene.parts.body = { enabled: false };
      },
    },
  ],
  applyRecipe: [
    usual('without actions', ['augmentation.created', 'endpoint.created']),
    {
      when: 'with an action',
      emits: ['augmentation.created', 'endpoint.created', 'action.created'],
      prepare: async ({ parts }) => {
        parts.body = { recipe_id: 'scheduled-report', parameters: { title: 'Mondays' } };
      },
    },
  ],
  importWorkspace: [
    usual('of an app', ['app.created', 'augmentation.created']),
    {
      when: 'of something of every kind',
      emits: [
        'namespace.created',
        'environment.created',
        'tool.created',
        'tool_instance.created',
        'model_entitlement.created',
        'app.created',
        'augmentation.created',
        'endpoint.created',
        'action.created',
      ],
      prepare: async ({ owner, parts }) => {
        const word = `of-${unique()}`;
        const model = { logical_model_id: word, name: word };
        await called(owner, 'POST', `/v1/orgs/${owner.orgId}/model-catalog`, model);
        const { document } = parts.body as { document: { apps: { definition: object }[] } };
        const runs = { key: 'runs', name: word, augmentation: 'answer' };
        const definition = {
          ...document.apps[0]!.definition,
          endpoint: { ...runs, path: '/ask' },
          actions: [runs],
        };
        const whole = {
          ...document,
          namespaces: [{ slug: word, name: word }],
          environments: [{ slug: word, name: word }],
          tools: [{ slug: word, name: word, description: word }],
          tool_instances: [{ key: 'ours', tool: word, name: word }],
          entitlements: [{ model: word }],
          apps: [{ key: 'whole', definition }],
        };
        give(parts, { document: whole });
      },
    },
    {
      when: 'of an environment, in place of an archived default',
      emits: ['environment.created', 'environment.updated'],
      prepare: async ({ owner, parts }) => {
        const workspaces = `/v1/orgs/${owner.orgId}/workspaces`;
        const home = { organization_id: owner.orgId, name: unique() };
        const { workspace_id } = await called(owner, 'POST', workspaces, home);
        const url = `${workspaces}/${String(workspace_id)}/environments`;
        const made = await called(owner, 'POST', url, { slug: 'old', name: 'Old' });
        const { environment_id } = made.environment as { environment_id: string };
        await called(owner, 'PUT', `${url}/${environment_id}`, { status: 'archived' });
        const { document } = parts.body as { document: object };
        give(parts, { document: { ...document, apps: [], environments: [{ slug: 'new', name: 'New' }] } });
        parts.params.workspace_id = String(workspace_id);
      },
    },
  ],
  deleteSecret: [
    {
      when: 'for good',
      emits: ['secret.destroyed'],
      record: 'destroy secret',
      prepare: async ({ parts }) => {
        parts.query.permanent = 'true';
      },
    },
    {
      when: 'that can be restored',
      emits: ['secret.deleted'],
      prepare: async ({ parts }) => {
        delete parts.query.permanent;
      },
    },
  ],
};
