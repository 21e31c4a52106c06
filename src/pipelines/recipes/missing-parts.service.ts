import type { ServiceDeps } from '../../access/service-deps.ts';
import { recordChange } from '../../data/record-change.ts';
import { statement } from '../../data/writes.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { AppPlace, Checked } from '../../kernel/checked-place.ts';
import { InputError, type InputIssue, notFound, valueIssue } from '../../kernel/errors.ts';
import { modelsOf } from '../../models/views.ts';
import { demandInstances } from '../../tools/tool-instances/kept-instances.ts';
import { instancesByTool } from '../../tools/views.ts';
import { nameableSecrets } from '../../vault/views.ts';
import { raiseVersions } from '../augmentations/step-dependents.ts';
import { type MissingParts, missingPartsOf } from './missing-parts.ts';
import { mappedTexts } from './recipe-mapping.ts';
import { isAllowed, type MissingPart } from './recipe-surroundings.ts';
import { renameSecrets } from './renamed-secrets.ts';

/** What the workspace has now in place of what an app misses, by the name of that. */
export interface MapMissing {
  /** Tool instances, by the slug of the tool. */
  tools?: Record<string, unknown> | null;
  /** Models of the organization, by the missing model. */
  models?: Record<string, unknown> | null;
  /** Names or identifiers of secrets, by the missing name. */
  secrets?: Record<string, unknown> | null;
}

interface LackingStep {
  id: string;
  augmentationId: string;
  /** The tool of which it has no instance, and the model that is not there. */
  tool: string | null;
  model: string | null;
}

/** Steps of an app that lack the instance of one of the tools ($4), or that name one of the models ($5) in vain. */
const LACKING = `select p.id, t.id as "augmentationId",
    case when p.tool_slug = any($4::text[]) and i.id is null then p.tool_slug end as tool,
    case when p.logical_model_id = any($5::text[]) and m.id is null then p.logical_model_id end as model
  from augmentations t join augmentation_stages g on g.augmentation_id = t.id
  join augmentation_steps p on p.stage_id = g.id
  left join (${instancesByTool('$1', '$2')}) i on i.id = p.tool_instance_id
  left join (${modelsOf('$1')}) m on m.id = p.logical_model_id
  where t.org_id = $1 and t.workspace_id = $2 and t.app_id = $3
    and (p.tool_slug = any($4::text[]) and i.id is null or p.logical_model_id = any($5::text[]) and m.id is null)`;

const TARGETS = `select
  (select coalesce(json_object_agg(i.id, i.slug), '{}') from (${instancesByTool('$1', '$2')}) i
    where i.id = any($3::text[])) as instances,
  array(select m.id from (${modelsOf('$1')}) m where m.id = any($4::text[])) as models,
  (select coalesce(json_agg(json_build_object('id', s.id, 'name', s.name)), '[]')
    from (${nameableSecrets('$1', '$2', '$6', '$7')}) s
    where s.status = 'active' and (s.id = any($5::text[]) or s.name = any($5::text[]))) as secrets`;

interface Targets {
  instances: Record<string, string>;
  models: string[];
  secrets: { id: string; name: string }[];
}

type NameMap = ReadonlyMap<string, string>;

/** What apps lack of what their steps and texts name, and what takes its place later. */
export class MissingPartsService {
  readonly #deps: ServiceDeps;

  constructor(deps: ServiceDeps) {
    this.#deps = deps;
  }

  /** What an app lacks now. */
  of(place: Checked<AppPlace>): Promise<MissingParts> {
    return missingPartsOf(this.#deps.sql, place);
  }

  /**
   * Gives steps what they lack. Steps that lack nothing keep what they have.
   * @returns what is still missing
   * @throws InputError at each name that the app does not miss, and at each target that is not in the workspace
   */
  async map(caller: Caller, place: Checked<AppPlace>, input: MapMissing): Promise<MissingParts> {
    const { orgId, workspaceId, appId } = place;
    const { access } = this.#deps;
    const [tools, models] = [mappedTexts(input.tools), mappedTexts(input.models)];
    const secrets = mappedTexts(input.secrets);
    if (tools.size + models.size + secrets.size === 0) return this.of(place);
    if (secrets.size > 0)
      for (const part of ['app', 'endpoint', 'action'] as const)
        await access.requireWorkspace(caller, orgId, workspaceId, `${part}:update`, { appId });
    const mayShared = await isAllowed(() => access.requireOrganization(caller, orgId, 'secret:read'));
    const mayOwn = await isAllowed(() => access.requireWorkspace(caller, orgId, workspaceId, 'secret:read'));
    await this.#deps.changes.run(caller, async (tx) => {
      // the app before its parts, as locks are taken
      if (secrets.size > 0) await tx.lock('apps', { id: appId }, 'no key update', () => notFound('app', appId));
      const ofApp = statement`t.org_id = ${orgId} and t.workspace_id = ${workspaceId} and t.app_id = ${appId}`;
      await tx.lockUnread('augmentations', ofApp, 'no key update');
      const steps = await tx.query<LackingStep>({
        text: LACKING,
        values: [orgId, workspaceId, appId, [...tools.keys()], [...models.keys()]],
      });
      const wanted = [[...tools.values()], [...models.values()], [...secrets.values()]];
      const [targets] = await tx.query<Targets>({
        text: TARGETS,
        values: [orgId, workspaceId, ...wanted, mayShared, mayOwn],
      });
      const lacked = secrets.size > 0 ? (await missingPartsOf(tx, place)).missing : [];
      const issues = [...issuesOf(steps, targets!, tools, models), ...secretIssues(lacked, targets!, secrets)];
      if (issues.length > 0) throw new InputError(issues);
      const changed = new Set(steps.map(({ augmentationId }) => augmentationId));
      if (secrets.size > 0)
        for (const id of await renameSecrets(tx, place, targetNames(targets!, secrets))) changed.add(id);
      demandInstances(tx, [...tools.values()]);
      const rows = steps.map(({ id, tool, model }) => ({
        id,
        instance: tool === null ? null : tools.get(tool)!,
        slug: tool === null ? null : targets!.instances[tools.get(tool)!]!,
        model: model === null ? null : models.get(model)!,
      }));
      tx.write(statement`update augmentation_steps p set tool_instance_id = coalesce(r.instance, p.tool_instance_id),
          tool_slug = coalesce(r.slug, p.tool_slug), logical_model_id = coalesce(r.model, p.logical_model_id)
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) r(id text, instance text, slug text, model text)
        where p.id = r.id`);
      const ids = [...changed].sort();
      tx.write(raiseVersions(ids));
      for (const id of ids) recordChange(tx, 'update', 'augmentation', { id, ...place }, { fields: ['stages'] });
    });
    return this.of(place);
  }
}

/** The names of secrets in place of others. */
function targetNames({ secrets }: Targets, given: NameMap): NameMap {
  const names = new Map(secrets.flatMap(({ id, name }) => [[id, name] as const, [name, name] as const]));
  return new Map([...given].map(([name, target]) => [name, names.get(target)!]));
}

/** What is wrong with the secrets of a mapping. */
function secretIssues(lacked: readonly MissingPart[], { secrets }: Targets, given: NameMap): InputIssue[] {
  const names = new Set(lacked.flatMap(({ kind, name }) => (kind === 'secret' ? [name] : [])));
  const targets = new Set(secrets.flatMap(({ id, name }) => [id, name]));
  return [...given].flatMap(([name, target]) => {
    const path = ['input', 'secrets', name];
    if (!names.has(name)) return [valueIssue(path, `no text of the app misses the secret '${name}'`)];
    if (targets.has(target)) return [];
    return [valueIssue(path, `there is no secret '${target}' that apps of the workspace can name`)];
  });
}

/** What is wrong with a mapping: names that the app does not miss, and targets that are not there. */
function issuesOf(
  steps: readonly LackingStep[],
  { instances, models }: Targets,
  givenTools: ReadonlyMap<string, string>,
  givenModels: ReadonlyMap<string, string>,
): InputIssue[] {
  const [lackedTools, lackedModels] = [new Set(steps.map(({ tool }) => tool)), new Set(steps.map((one) => one.model))];
  return [
    ...[...givenTools].flatMap(([name, id]) => {
      const path = ['input', 'tools', name];
      if (!lackedTools.has(name)) return [valueIssue(path, `no step of the app misses an instance of '${name}'`)];
      if (Object.hasOwn(instances, id)) return [];
      return [valueIssue(path, `there is no tool instance '${id}' in the workspace`)];
    }),
    ...[...givenModels].flatMap(([name, id]) => {
      const path = ['input', 'models', name];
      if (!lackedModels.has(name)) return [valueIssue(path, `no step of the app misses the model '${name}'`)];
      return models.includes(id) ? [] : [valueIssue(path, `there is no model '${id}' in the organization`)];
    }),
  ];
}
