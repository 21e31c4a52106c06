import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { secretCases } from '../../kernel/secret-corpus.ts';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Person, register } from '../../support/person.ts';
import {
  type Exported,
  exported,
  imported,
  newApp,
  newInstance,
  newModel,
  newSecret,
  newTool,
  newWorkspace,
  orgOf,
  sent,
} from './workspaces.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const ID = /(?<![A-Za-z0-9])[a-z]{2,5}_[0-9A-HJKMNP-TV-Z]{26}/;

const name = fc.oneof(
  fc.constantFrom('Sales', 'sales', 'Été 2025!', '日本', 'default', 'a'.repeat(255)),
  fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }).filter((text) => !text.includes('\u0000')),
);
const description = fc.option(fc.constantFrom('', 'What it is.', '{{workspace}}'));
/** Texts; `<KIND>` becomes the identifier of one of the workspace. */
const text = fc.constantFrom(
  '',
  'plain',
  'in <workspace>',
  'from <namespace> to <environment>',
  'call <instance>, not <other>',
  '{{workspace}} {{literal.workspace}} {{literal.literal.workspace}}',
  '{{workspace.namespace.one}} {{workspace.app.shop}} {{workspace.tool_instance.ours}}',
  '{{namespace}} {{app}} {{literal.app}}',
  '{{secret.search}} and <secret>',
  'secret://search',
  '{{input.text}} {{parameters.x}}',
);
const json = fc.dictionary(
  fc.constantFrom('prompt', 'place', '<namespace>', 'list', 'constructor'),
  fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.array(text, { maxLength: 2 })),
  { maxKeys: 3 },
);
const slugs = ['one', 'two', 'three'];
const wholeWorkspace = fc.record({
  namespaces: fc.array(fc.record({ name, description }), { maxLength: 3 }),
  environments: fc.array(
    fc.record({ name, description, status: fc.constantFrom('active', 'locked', 'archived'), is_default: fc.boolean() }),
    { maxLength: 3 },
  ),
  instances: fc.array(
    fc.record({
      name: fc.constantFrom('Ours', 'Ours', 'Theirs'),
      description,
      tool: fc.nat(2),
      namespace: fc.nat(4),
      configuration: json,
      auth_config: json,
      hasKey: fc.boolean(),
      is_active: fc.boolean(),
      mcp_action_filter: fc.constantFrom([], ['send']),
      mcp_max_calls_per_turn: fc.option(fc.constant(5)),
      client: fc.constantFrom(null, 'secret://search', '<secret>', 'external:vault'),
    }),
    { maxLength: 4 },
  ),
  entitlements: fc.uniqueArray(
    fc.record({
      model: fc.constantFrom('large', 'small'),
      workspace_limits: fc.constantFrom({}, { max_requests_per_day: 5 }, { tokens_per_minute: 9, burst: { per: 's' } }),
      allowed_step_types: fc.constantFrom([], ['llm']),
      enabled: fc.boolean(),
    }),
    { maxLength: 2, selector: ({ model }) => model },
  ),
  apps: fc.array(
    fc.record({
      name,
      description,
      metadata: json,
      steps: fc.array(
        fc.record({
          name,
          config: json,
          logical_model_id: fc.constantFrom(null, 'large'),
          instance: fc.option(fc.nat()),
        }),
        { maxLength: 3 },
      ),
      schedule: fc.boolean(),
    }),
    { maxLength: 3 },
  ),
});
type Given = typeof wholeWorkspace extends fc.Arbitrary<infer Of> ? Of : never;

interface Ids {
  [kind: string]: string | undefined;
}

/** A value with identifiers in place of `<KIND>`; a kind that the workspace has none of becomes a word. */
const withIds = <Value>(value: Value, ids: Ids): Value =>
  JSON.parse(
    JSON.stringify(value).replaceAll(/<(\w+)>/g, (_match, kind: string) => ids[kind] ?? `no ${kind}`),
  ) as Value;

interface Equipped {
  who: Person;
  tools: string[];
  secret: string;
}

/** Somebody with models, tools and a secret. */
async function equipped(): Promise<Equipped> {
  const who = await register(app, { name: 'ann' });
  for (const model of ['large', 'small']) await newModel(who, model);
  const secret = await newSecret(who, 'search');
  const tools = [
    await newTool(who, 'own', { tags: ['ours'], schema_changelog: { 1: 'The first.' } }),
    await newTool(who, 'own_too', { config_schema: [], action_schemas: [{ name: 'send', description: 'Sends.' }] }),
  ];
  const found = await who.call<{ tools: { tool_id: string }[] }>('GET', `${orgOf(who)}/tools?search=wikipedia`);
  return { who, tools: [...tools, found.body.tools[0]!.tool_id], secret };
}

/** Makes what was generated, through the front door. */
async function make({ who, tools, secret }: Equipped, home: string, given: Given): Promise<void> {
  const ids: Ids = { workspace: home.split('/').at(-1), secret };
  const namespaces: string[] = [];
  for (const [at, one] of given.namespaces.entries()) {
    const body = { ...one, slug: slugs[at] };
    namespaces.push((await sent<{ namespace_id: string }>(who, 'POST', `${home}/namespaces`, body)).namespace_id);
  }
  ids.namespace = namespaces[0];
  const environments: string[] = [];
  for (const [at, { status, ...one }] of given.environments.entries()) {
    const url = `${home}/environments`;
    const made = await sent<{ environment: { environment_id: string } }>(who, 'POST', url, { ...one, slug: slugs[at] });
    const id = made.environment.environment_id;
    environments.push(id);
    // the default one stays open as long as another one is
    if (status !== 'active') await who.call('PUT', `${url}/${id}`, { status });
  }
  ids.environment = environments[0];
  const instances: string[] = [];
  for (const { tool, namespace, hasKey, client, ...one } of given.instances) {
    const isOwn = tool < 2;
    const body = {
      ...one,
      ...(namespace < namespaces.length && { namespace_id: namespaces[namespace] }),
      ...(namespace === 4 && { namespace_id: 'default' }),
      configuration: isOwn ? { ...one.configuration, ...(hasKey && { api_key: 'KEPT-secret' }) } : {},
      ...(client && { connection_credentials: { client_id: 'us', client_secret_vault_id: client } }),
    };
    instances.push(await newInstance(who, home, tools[tool]!, withIds(body, { ...ids, instance: instances[0] })));
  }
  ids.instance = instances[0];
  for (const { model, ...one } of given.entitlements)
    await sent(who, 'POST', `${home}/model-entitlements`, { logical_model_id: model, ...one });
  for (const { steps, schedule, ...one } of given.apps) {
    const whole = steps.map(({ instance, ...step }) => ({
      ...step,
      step_type: 'tool',
      ...(instance !== null && instances.length > 0 && { tool_instance_id: instances[instance % instances.length] }),
    }));
    const made = await newApp(who, home, withIds(whole, ids), withIds(one, ids));
    ids.other = made.app_id;
    const { augmentation_id } = made;
    if (schedule) {
      const action = { name: 'Daily', kind: 'scheduled', cron: '30 8 * * 1-5', augmentation_id };
      await sent(who, 'POST', `${made.url}/actions`, action);
    }
    await sent(who, 'POST', `${made.url}/endpoints`, { name: 'Chat', path: '/chat', augmentation_id });
  }
}

/** A document without what cannot be the same in a copy: its name, values that are kept secret, held schedules. */
const comparable = ({ document: { workspace: _name, ...document }, ...rest }: Exported, isHeld: boolean): unknown =>
  JSON.parse(
    JSON.stringify({ ...rest, document }, (key, value: unknown) => {
      if (key === 'credentials') return undefined;
      const isSchedule = typeof value === 'object' && (value as { kind?: unknown } | null)?.kind === 'scheduled';
      return isSchedule && isHeld ? { ...value, enabled: null } : value;
    }),
  );

test('the export of an imported export is the export', { timeout: 240_000 }, async () => {
  const given = await equipped();
  const { who } = given;
  await fc.assert(
    fc.asyncProperty(wholeWorkspace, async (generated) => {
      const home = await newWorkspace(who, 'First');
      await make(given, home, generated);
      const first = await exported(who, home);
      expect(first.status, JSON.stringify(first.body)).toBe(200);
      const text = JSON.stringify(first.body);
      expect(text).not.toMatch(ID);
      expect(text).not.toContain('KEPT');
      expect(first.body.warnings).toEqual([]);
      const copy = await newWorkspace(who);
      const { status, body } = await imported(who, copy, { document: first.body.document });
      expect(status, JSON.stringify(body)).toBe(200);
      expect(body.warnings).toEqual([]);
      expect(body.missing.filter(({ kind }) => kind !== 'credential')).toEqual([]);
      const again = await exported(who, copy);
      expect(again.status).toBe(200);
      const isHeld = body.missing.length > 0;
      expect(comparable(again.body, isHeld)).toEqual(comparable(first.body, isHeld));
    }),
    { numRuns: 15 },
  );
});

test('nothing that is recognized as a secret leaves, wherever it stands', async () => {
  const { who } = await equipped();
  let run = 0;
  const places = ['configuration', 'auth_config', 'action_defaults', 'limits', 'app'] as const;
  // within prose, those that have a form of their own
  const proses = ['tool', 'environment'] as const;
  // the last two are random words without a telling key: they only make a warning
  const known = secretCases.slice(0, -2).filter(({ secret }) => secret.length >= 10);
  const formed = known.filter(({ key }) => key === 'note');
  const hidden = fc.oneof(
    fc.record({ secret: fc.constantFrom(...known), place: fc.constantFrom(...places) }),
    fc.record({ secret: fc.constantFrom(...formed), place: fc.constantFrom(...proses) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(hidden, { minLength: 4, maxLength: 8 }), async (secrets) => {
      run += 1;
      const home = await newWorkspace(who, 'Hidden');
      const of = (place: (typeof places)[number]) =>
        Object.fromEntries(
          secrets
            .filter((one) => one.place === place)
            .map(({ secret }, at) => [`part${at}`, { [secret.key]: secret.text }]),
        );
      const texts = (place: (typeof proses)[number]) =>
        secrets
          .filter((one) => one.place === place)
          .map(({ secret }) => secret.text)
          .join(' and ');
      const tool = await newTool(who, `hidden-${run}`, { description: `Does it. ${texts('tool')}` });
      await newInstance(who, home, tool, {
        configuration: of('configuration'),
        auth_config: of('auth_config'),
        action_defaults: { send: of('action_defaults') },
      });
      const environment = { name: 'Live', slug: 'live', description: texts('environment') };
      await sent(who, 'POST', `${home}/environments`, environment);
      const entitlement = { logical_model_id: 'large', workspace_limits: of('limits') };
      await sent(who, 'POST', `${home}/model-entitlements`, entitlement);
      await newApp(who, home, [{ name: 'Ask', step_type: 'llm', config: of('app') }]);
      const { status, body } = await exported(who, home);
      expect(status, JSON.stringify(body)).toBe(200);
      const written = JSON.stringify(body.document);
      for (const { secret, place } of secrets)
        expect(written, `${place} ${secret.key}`).not.toContain(JSON.stringify(secret.secret).slice(1, -1));
    }),
    { numRuns: 12 },
  );
});
