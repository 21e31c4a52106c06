import { type ConstraintIssue, type Constraints, checkConstraints } from '../../kernel/constraints.ts';
import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { DEFAULT_NAMESPACE } from '../../kernel/place.ts';
import { SECRET_REFERENCE } from '../../kernel/plain-secrets.ts';
import { snakeCase } from '../../kernel/snake-case.ts';
import { EXTERNAL } from '../../tools/tool-instances/tool-instance.service.ts';
import { checkNewTool } from '../../tools/tools/tool.service.ts';
import { entryShapes } from '../../tools/tools/tool-shapes.ts';
import { definitionIssues } from '../recipes/recipe-check.ts';
import type { RecipeDefinition, RecipeRequirements, RecipeStep } from '../recipes/recipe-document.ts';
import { type CheckedMapping, toolNames, withMapping } from '../recipes/recipe-mapping.ts';
import { type LocalIds, newLocalIds, withIds, withReferences } from '../recipes/recipe-references.ts';
import { checkDefinitionForm } from '../recipes/recipe-schema.ts';
import { type Uses, usesOf } from '../recipes/recipe-uses.ts';
import { secretsNamedIn } from '../recipes/secret-hider.ts';
import { toolOf } from './document-parts.ts';
import { checkWorkspaceForm } from './workspace-document.schema.ts';
import {
  type AppPart,
  type InstancePart,
  localName,
  type ToolPart,
  WORKSPACE,
  type WorkspaceDocument,
} from './workspace-document.ts';

/** Where a document stands in the input, for issues. */
const AT = ['input', 'document'];
/** Most issues that one answer lists. */
const SHOWN = 50;

/** An app with identifiers and with what takes the place of what it names. */
export interface PlannedApp {
  key: string;
  id: string;
  needsEmbedding: boolean;
  definition: RecipeDefinition;
  ids: LocalIds;
  /** The tool instances of steps that the mapping or the document says. */
  instances: Map<RecipeStep, string>;
}

/** What importing a document makes. */
export interface WorkspacePlan {
  document: WorkspaceDocument;
  namespaceIds: ReadonlyMap<string, string>;
  environmentIds: ReadonlyMap<string, string>;
  /** The instances to make, with texts as they are stored. */
  instances: readonly { id: string; at: number; part: InstancePart }[];
  /** The identifiers of instances by their keys, also of those that the mapping has others for. */
  instanceIds: ReadonlyMap<string, string>;
  apps: readonly PlannedApp[];
}

/** What a plan needs to know of the workspace. */
export interface PlanPlace {
  workspaceId: string;
  defaultNamespaceId: string;
}

const UNMAPPED: CheckedMapping = { instanceOf: () => null, model: (name) => name, withSecrets: (value) => value };

/** The lists of a document, which may be left out. */
export function withLists(given: WorkspaceDocument): WorkspaceDocument {
  const { namespaces, tools, tool_instances, environments, entitlements, apps } = given;
  return {
    ...given,
    namespaces: namespaces ?? [],
    tools: tools ?? [],
    tool_instances: tool_instances ?? [],
    environments: environments ?? [],
    entitlements: entitlements ?? [],
    apps: apps ?? [],
  };
}

/**
 * Checks a document whose form is right as if each part was made by itself, and puts identifiers into it.
 * @throws InputError with the places in the document
 */
export function planOfDocument(
  document: WorkspaceDocument,
  mapping: CheckedMapping = UNMAPPED,
  { workspaceId, defaultNamespaceId }: PlanPlace = {
    workspaceId: newId('workspace'),
    defaultNamespaceId: newId('namespace'),
  },
): WorkspacePlan {
  const { namespaces, environments, tool_instances, apps } = document;
  const namespaceIds = new Map([
    [DEFAULT_NAMESPACE, defaultNamespaceId],
    ...namespaces.map(({ slug }) => [slug, newId('namespace')] as const),
  ]);
  const environmentIds = new Map(environments.map(({ slug }) => [slug, newId('environment')]));
  const replaced = (part: InstancePart) => mapping.instanceOf({ tool: part.tool, tool_instance: part.key });
  const instanceIds = new Map(
    tool_instances.map((part) => [part.key, replaced(part)?.id ?? newId('tool_instance')] as const),
  );
  const appIds = new Map(apps.map(({ key }) => [key, newId('app')]));
  const around: LocalIds = new Map([
    [WORKSPACE, workspaceId],
    ...[...namespaceIds].map(([slug, id]) => [localName('namespace', slug), id] as const),
    ...[...environmentIds].map(([slug, id]) => [localName('environment', slug), id] as const),
    ...[...instanceIds].map(([key, id]) => [localName('tool_instance', key), id] as const),
    ...[...appIds].map(([key, id]) => [localName('app', key), id] as const),
  ]);
  const drafts = apps.map((part) => draftOf(part, appIds.get(part.key)!, around));
  const issues = [
    ...partIssues(document),
    ...drafts.flatMap(({ written, definition }, at) => appIssues(written, definition, at)),
  ];
  refuse(issues);
  const instances = tool_instances.map((part) => withReferences(mapping.withSecrets(named(part)), around));
  const mappedApps = drafts.map(({ definition }) => withMapping(definition, mapping));
  // names that take the place of others may be longer
  refuse([
    ...mappedIssues(document, instances),
    ...drafts.flatMap(({ written }, at) => appIssues(written, mappedApps[at]!.definition, at)),
  ]);
  return {
    document,
    namespaceIds,
    environmentIds,
    instanceIds,
    instances: tool_instances.flatMap((part, at) =>
      replaced(part) ? [] : [{ id: instanceIds.get(part.key)!, at, part: instances[at]! }],
    ),
    apps: drafts.map(({ written: _written, definition: _draft, ...app }, at) => {
      const { definition, instances: given } = mappedApps[at]!;
      const all = new Map(given);
      for (const step of definition.steps) {
        const own = all.has(step) ? undefined : instanceNamed(tool_instances, step);
        if (own) all.set(step, instanceIds.get(own.key)!);
      }
      return { ...app, definition, instances: all };
    }),
  };
}

/** What is wrong with the instances of a document as they are stored. */
function mappedIssues(document: WorkspaceDocument, instances: readonly InstancePart[]): InputIssue[] {
  const form = checkWorkspaceForm({ ...document, tool_instances: instances, apps: [] });
  if (form.length > 0) return form.map((issue) => ({ ...issue, path: [...AT, ...issue.path] }));
  return instances.flatMap(instanceIssues);
}

/** @throws InputError if there are any */
export function refuse(issues: readonly InputIssue[]): void {
  if (issues.length > 0) throw new InputError(issues.slice(0, SHOWN));
}

/** The instance of a document that a step names. */
const instanceNamed = (instances: readonly InstancePart[], { tool, tool_instance }: RecipeStep) =>
  tool && tool_instance ? instances.find((one) => one.tool === tool && one.key === tool_instance) : undefined;

/** An app makes no namespace here: what it says of one is never written. */
const withNamespace = (definition: AppPart['definition']): RecipeDefinition => ({
  ...definition,
  namespace: { name: 'none' },
});

function draftOf({ key, needs_embedding, definition: given }: AppPart, id: string, around: LocalIds) {
  const written = withNamespace(given);
  const ids = new Map([...around, ...newLocalIds(written)]);
  ids.delete('namespace');
  ids.set('app', id);
  const definition = withIds(written, ids);
  return { key, id, needsEmbedding: needs_embedding === true, ids, written, definition };
}

function appIssues(written: RecipeDefinition, definition: RecipeDefinition, at: number): InputIssue[] {
  const form = checkDefinitionForm(definition);
  const found = form.length > 0 ? form : definitionIssues(definition, written);
  return found.map((issue) => ({ ...issue, path: [...AT, 'apps', at, 'definition', ...issue.path] }));
}

/** What is wrong with the parts besides apps, as far as the document shows it. */
function partIssues(document: WorkspaceDocument): InputIssue[] {
  const { namespaces, environments, tools, tool_instances, entitlements, apps } = document;
  const slugs = new Set([DEFAULT_NAMESPACE, ...namespaces.map(({ slug }) => slug)]);
  return [
    ...doubles('namespaces', 'slug', namespaces),
    ...namespaces.flatMap(({ slug }, at) =>
      slug === DEFAULT_NAMESPACE ? [issueAt(['namespaces', at, 'slug'], 'every workspace has it already')] : [],
    ),
    ...doubles('environments', 'slug', environments),
    ...environments
      .flatMap(({ is_default }, at) => (is_default ? [at] : []))
      .slice(1)
      .map((at) => issueAt(['environments', at, 'is_default'], 'another environment is the default')),
    ...doubles('tools', 'slug', tools),
    ...tools.flatMap(toolIssues),
    ...doubles('tool_instances', 'key', tool_instances),
    ...tool_instances.flatMap((part, at) => [
      ...instanceIssues(part, at),
      ...(part.namespace && !slugs.has(part.namespace)
        ? [
            issueAt(
              ['tool_instances', at, 'namespace'],
              `no namespace of the document has the slug '${part.namespace}'`,
            ),
          ]
        : []),
    ]),
    ...doubles('entitlements', 'model', entitlements),
    ...doubles('apps', 'key', apps),
  ];
}

/** An issue at a place in the document. */
export const issueAt = (path: (string | number)[], error: string): InputIssue => valueIssue([...AT, ...path], error);

/** Issues of a part as its service has them (`input`, `configSchema`, …), at the place of the part. */
export const issuesIn = (path: readonly (string | number)[], issues: readonly (InputIssue | ConstraintIssue)[]) =>
  issues.map((issue): InputIssue => {
    const [, field, ...rest] = issue.path;
    return { input: undefined, ...issue, path: [...AT, ...path, snakeCase(String(field)), ...rest] };
  });

function doubles<Name extends string>(
  list: string,
  name: Name,
  parts: readonly Readonly<Record<Name, string>>[],
): InputIssue[] {
  const seen = new Set<string>();
  return parts.flatMap((part, at) => {
    const word = part[name];
    if (seen.has(word)) return [issueAt([list, at, name], `'${word}' is listed twice`)];
    seen.add(word);
    return [];
  });
}

const ADDRESS: Constraints = { format: 'uri' };
const MAX_ENTRY_BYTES = 32 * 1024;
const entryLists = [
  ['config_schema', entryShapes.configSchema],
  ['credential_schema', entryShapes.credentialSchema],
  ['action_schemas', entryShapes.actionSchemas],
  ['mcp_functions', entryShapes.mcpFunctions],
] as const;

function toolIssues(part: ToolPart, at: number): InputIssue[] {
  const place = ['tools', at];
  const entries = entryLists.flatMap(([list, shape]) =>
    (part[list] ?? []).flatMap((entry, index) => [
      ...bytesIssues([...place, list, index], entry, MAX_ENTRY_BYTES),
      ...shape.check(entry).map((issue) => ({ ...issue, path: [...AT, ...place, list, index, ...issue.path] })),
    ]),
  );
  const { current_schema_version: version, min_schema_version: least } = part;
  const versions =
    (least ?? 1) > (version ?? 1)
      ? [issueAt([...place, 'min_schema_version'], `the current version is ${version ?? 1}`)]
      : [];
  const own = [...addressIssues(place, part, ['icon_url', 'documentation_url']), ...entries, ...versions];
  return own.length > 0 ? own : checked(place, () => checkNewTool(toolOf(part), version ?? 1));
}

function checked(place: (string | number)[], check: () => void): InputIssue[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return issuesIn(place, error.issues);
  }
}

function addressIssues(place: (string | number)[], part: object, names: readonly string[]): InputIssue[] {
  return names.flatMap((name) => {
    const value = (part as Record<string, unknown>)[name];
    if (typeof value !== 'string') return [];
    return checkConstraints(value, ADDRESS).map((issue) => ({ ...issue, path: [...AT, ...place, name] }));
  });
}

const bytesIssues = (place: (string | number)[], value: unknown, most: number): InputIssue[] => {
  const bytes = Buffer.byteLength(JSON.stringify(value ?? null));
  return bytes > most ? [issueAt(place, `it has at most ${most} bytes, not ${bytes}`)] : [];
};

const SMALL = 64 * 1024;
const budgets = {
  configuration: 256 * 1024,
  auth_config: SMALL,
  custom_action_parameters: SMALL,
  action_defaults: SMALL,
  mcp_parameter_overrides: SMALL,
} as const;

/** A text that is the reference to one secret. */
const ONE_SECRET = /^\{\{secret\.([^{}]{1,255})\}\}$/;

/** The name of the secret that a client has; `null` for a reference to another vault. */
export const clientSecretName = (reference: string): string | null =>
  (ONE_SECRET.exec(reference) ?? SECRET_REFERENCE.exec(reference))?.[1] ?? null;

/** An instance that names the secret of its client as texts name secrets. */
function named(part: InstancePart): InstancePart {
  const { connection_credentials: client } = part;
  const name = client?.client_secret ? clientSecretName(client.client_secret) : null;
  return name === null ? part : { ...part, connection_credentials: { ...client, client_secret: `{{secret.${name}}}` } };
}

function instanceIssues(part: InstancePart, at: number): InputIssue[] {
  const place = ['tool_instances', at];
  const { connection_credentials: client, custom_actions } = part;
  const secret = client?.client_secret;
  return [
    ...Object.entries(budgets).flatMap(([name, most]) =>
      bytesIssues([...place, name], part[name as keyof typeof budgets], most),
    ),
    ...(custom_actions ?? []).flatMap((action, index) =>
      bytesIssues([...place, 'custom_actions', index], action, SMALL),
    ),
    ...addressIssues([...place, 'connection_credentials'], client ?? {}, ['callback_url']),
    // it may be the secret itself: it is not shown
    ...(secret && clientSecretName(secret) === null && !EXTERNAL.test(secret)
      ? [
          issueAt(
            [...place, 'connection_credentials', 'client_secret'],
            'this is not a reference: write {{secret.NAME}}',
          ),
        ]
      : []),
  ];
}

/** The parts of an app as the uses of the whole document name them. */
const partOf = (key: string, part: string): string => (part === 'app' ? `app.${key}` : `app.${key}.${part}`);

type MutableUses = { [Kind in keyof Uses]: Map<string, string[]> };

/** What is used by apps that are planned, by instances, and by entitlements: each with the parts that use it. */
export function usesOfPlan(
  apps: readonly Pick<PlannedApp, 'key' | 'definition' | 'instances'>[],
  instances: readonly InstancePart[],
  models: readonly string[],
): Uses {
  const all: MutableUses = { tools: new Map(), models: new Map(), secrets: new Map() };
  const add = (kind: keyof Uses, name: string, users: readonly string[]) =>
    all[kind].set(name, [...(all[kind].get(name) ?? []), ...users]);
  for (const { key, definition, instances: given } of apps) {
    const steps = definition.steps.map((step) => (given.has(step) ? { ...step, tool: null } : step));
    const uses = usesOf({ ...definition, steps });
    for (const kind of ['tools', 'models', 'secrets'] as const)
      for (const [name, users] of uses[kind])
        add(
          kind,
          name,
          users.map((part) => partOf(key, part)),
        );
  }
  for (const part of instances) for (const name of secretsOf(part)) add('secrets', name, [`tool_instance.${part.key}`]);
  for (const model of models) add('models', model, [`entitlement.${model}`]);
  return all;
}

/** The secrets that an instance names. */
function secretsOf(part: InstancePart): Set<string> {
  const names = secretsNamedIn(part);
  const reference = part.connection_credentials?.client_secret;
  const name = reference ? clientSecretName(reference) : null;
  if (name !== null) names.add(name);
  return names;
}

/** What a document uses, as it stands, and the names by which a mapping may call its tools. */
export function usesOfDocument(document: WorkspaceDocument) {
  const { apps, tool_instances, entitlements } = document;
  const planned = apps.map(({ key, definition }) => ({
    key,
    definition: withNamespace(definition),
    instances: new Map<RecipeStep, string>(),
  }));
  const models = entitlements.map(({ model }) => model);
  const uses = usesOfPlan(planned, tool_instances, models);
  const steps = planned.flatMap(({ definition }) => definition.steps);
  const parts = tool_instances.map(({ tool, key }) => ({ tool, tool_instance: key }));
  return { ...uses, tools: new Set([...steps, ...parts].flatMap(toolNames)), slugs: uses.tools };
}

/** What a document uses and does not make, each once and sorted. */
export function requirementsOfDocument(document: WorkspaceDocument): RecipeRequirements {
  const { slugs, models, secrets } = usesOfDocument(document);
  const made = new Set(document.tools.map(({ slug }) => slug));
  const tools = new Set([...slugs.keys(), ...document.tool_instances.map(({ tool }) => tool)]);
  return {
    tools: [...tools].filter((slug) => !made.has(slug)).sort(),
    models: [...models.keys()].sort(),
    secrets: [...secrets.keys()].sort(),
  };
}
