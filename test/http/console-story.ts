/** What makes a request of a person, over whatever transport. */
export type CallService = (method: 'GET' | 'POST' | 'PUT', url: string, payload?: object) => Promise<unknown>;

interface Places {
  orgId: string;
  workspaceId: string;
}

/** What the views of the console show: a workspace in which something has happened. */
export interface Story {
  appId: string;
  augmentationId: string;
  staging: string;
  production: string;
}

const idIn = (body: unknown, name: string) => (body as Record<string, string>)[name]!;

/** Tells a short story through the API: environments, secrets, an app with a pipeline, runs, a model and a text. */
export async function tellStory(call: CallService, { orgId, workspaceId }: Places): Promise<Story> {
  const org = `/v1/orgs/${orgId}`;
  const home = `${org}/workspaces/${workspaceId}`;
  const post = (url: string, payload: object) => call('POST', url, payload);
  const environment = async (name: string) =>
    idIn(
      idOrSelf(await post(`${home}/environments`, { name, slug: name.toLowerCase() }), 'environment'),
      'environment_id',
    );
  const [staging, production] = [await environment('Staging'), await environment('Production')];
  const secret = (name: string, place: object) =>
    post(`${org}/secrets`, {
      name,
      secret_type: 'token',
      value: { value: `${name}-1` },
      workspace_id: workspaceId,
      ...place,
    });
  await secret('STRIPE_KEY', { environment_id: staging });
  await secret('STRIPE_KEY', { environment_id: production });
  await secret('DATABASE_URL', { environment_id: production });
  await secret('SENTRY_DSN', {});
  const appId = idIn(await post(`${home}/apps`, { name: 'Support desk', description: 'Answers questions.' }), 'app_id');
  const stages = [
    { name: 'Read', execution_mode: 'sequential', steps: [{ name: 'Fetch the ticket', step_type: 'tool' }] },
    {
      name: 'Think',
      execution_mode: 'parallel',
      steps: [
        { name: 'Search the manual', step_type: 'retrieval' },
        { name: 'Ask the model', step_type: 'llm' },
      ],
    },
    { name: 'Answer', execution_mode: 'sequential', steps: [{ name: 'Send the answer', step_type: 'tool' }] },
  ];
  const pipeline = await post(`${home}/apps/${appId}/augmentations`, {
    name: 'Answer a ticket',
    status: 'active',
    stages,
  });
  const augmentationId = idIn(pipeline, 'augmentation_id');
  const releases: string[] = [];
  for (const version of ['1.0.0', '1.1.0'])
    releases.push(
      idIn(await post(`${home}/apps/${appId}/releases`, { version, notes: `Notes of ${version}` }), 'release_id'),
    );
  const deploy = (environmentId: string, releaseId: string) =>
    post(`${home}/environments/${environmentId}/deploy`, { app_id: appId, release_id: releaseId });
  await deploy(staging, releases[0]!);
  await deploy(staging, releases[1]!);
  await deploy(production, releases[0]!);
  const run = (executionId: string, status: string, done: number, error?: string) =>
    post(`${home}/executions`, {
      app_id: appId,
      augmentation_id: augmentationId,
      execution_id: executionId,
      status,
      stages_completed: done,
      total_stages: stages.length,
      ...(status !== 'running' && { ended_at: new Date().toISOString() }),
      ...(error && { error }),
    });
  await run('run-1', 'completed', 3);
  await run('run-2', 'failed', 1, 'The model did not answer in time.');
  await run('run-3', 'running', 2);
  await post(`${org}/secrets`, { name: 'model-key', secret_type: 'api_key', value: { api_key: 'k-1' } });
  const account = idIn(
    await post(`${org}/provider-accounts`, {
      name: 'Models EU',
      provider_type: 'openai',
      credentials_ref: 'secret://model-key',
    }),
    'provider_account_id',
  );
  const targets = [{ provider_account_id: account, model_name: 'large-1' }];
  await post(`${org}/model-catalog`, { logical_model_id: 'large', name: 'Large', targets });
  const files = `${home}/namespaces/default/artifacts`;
  const plan = { name: 'Plan', artifact_type: 'markdown', content: '# Plan\n\nBuy milk.\nCall Ann.' };
  const artifactId = idIn(await post(files, plan), 'artifact_id');
  await call('PUT', `${files}/${artifactId}`, { content: '# Plan\n\nBuy tea.\nCall Ann.' });
  return { appId, augmentationId, staging, production };
}

const idOrSelf = (body: unknown, name: string): unknown => (body as Record<string, unknown>)[name] ?? body;
