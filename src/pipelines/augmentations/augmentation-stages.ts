import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { AppPlace } from '../../kernel/checked-place.ts';
import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { demandInstances } from '../../tools/tool-instances/kept-instances.ts';
import { instancesByTool } from '../../tools/views.ts';
import { danglingReferences, stepReferences, uniqueKeys } from './step-keys.ts';

/**
 * Most stages of an augmentation, steps of one stage, steps of all stages, and bytes of the config of one step and of
 * all steps.
 */
export const limits = {
  stages: 50,
  stepsOfStage: 50,
  steps: 200,
  stepConfigBytes: 64 * 1024,
  configBytes: 256 * 1024,
} as const;

/** A step as a caller gives it. */
export interface StepInput {
  /** Keeps a step of the augmentation. Without it the step is new. */
  stepId?: string | null;
  /** What other steps call it by. Default: what it was, or made from the name. */
  key?: string | null;
  name: string;
  stepType: string;
  config?: Record<string, unknown> | null;
  logicalModelId?: string | null;
  toolInstanceId?: string | null;
  /** The tool, also while there is no instance of it. Default: that of the instance. */
  toolSlug?: string | null;
  action?: string | null;
}

/** A stage as a caller gives it. Its position is that in the list. */
export interface StageInput {
  /** Keeps a stage of the augmentation. Without it the stage is new. */
  stageId?: string | null;
  name: string;
  executionMode?: string | null;
  steps?: StepInput[] | null;
}

/** A step whose key is known. */
type KeyedStep = StepInput & { key: string };

/** A stage with the keys of all its steps. */
export interface KeyedStage extends StageInput {
  steps: KeyedStep[];
}

type Path = (string | number)[];

interface Placed<Item> {
  path: Path;
  item: Item;
}

const PATH: Path = ['input', 'stages'];

const stepsOf = (stages: readonly StageInput[]): Placed<StepInput>[] =>
  stages.flatMap(({ steps }, at) =>
    (steps ?? []).map((item, index) => ({ path: [...PATH, at, 'steps', index], item })),
  );

/** What is known of a step that is there. */
interface KnownStep extends Record<'toolInstanceId' | 'toolSlug', string | null> {
  id: string;
  key: string;
  config: unknown;
}

/**
 * Checks the stages that replace others: bounds over all of them, ids that are kept, keys, and what steps name: tool
 * instances, and each other. A tool instance that a step named before may be gone meanwhile. Models and tools are named
 * by words that their organization chose: they may come later, as with recipes, and are missing until then.
 * @param augmentationId the augmentation, which is locked; `null` for a new one
 * @returns the stages with the keys of their steps
 * @throws InputError
 */
export async function checkStages(
  tx: Tx,
  place: AppPlace,
  stages: readonly StageInput[],
  augmentationId: string | null,
): Promise<KeyedStage[]> {
  const [known, knownSteps] = augmentationId ? await stagesOf(tx, augmentationId) : [[], []];
  const keyed = withKeys(stages, knownSteps);
  const steps = stepsOf(keyed);
  /** The tools of instances. */
  const slugs = new Map<string, string>();
  for (const { toolInstanceId, toolSlug } of knownSteps)
    if (toolInstanceId && toolSlug) slugs.set(toolInstanceId, toolSlug);
  const placed = stages.map((item, at): Placed<StageInput> => ({ path: [...PATH, at], item }));
  const issues = [
    ...checkSizes(steps),
    ...checkIds('stage', placed, ({ stageId }) => stageId, known),
    ...checkIds('step', steps, ({ stepId }) => stepId, knownSteps),
    ...checkKeys(steps, knownSteps),
    ...(await checkInstances(tx, place, steps, knownSteps, slugs)),
  ];
  if (issues.length > 0) throw new InputError(issues);
  for (const { item } of steps) item.toolSlug ??= slugs.get(item.toolInstanceId ?? '');
  return keyed;
}

/** The stages with the keys of all their steps: given ones, those that kept steps have, and new ones. */
function withKeys(stages: readonly StageInput[], known: readonly KnownStep[]): KeyedStage[] {
  const before = new Map(known.map(({ id, key }) => [id, key]));
  const keys = uniqueKeys(
    stages.flatMap(({ steps }) =>
      (steps ?? []).map(({ name, key, stepId }) => ({ name, key: key ?? (stepId ? before.get(stepId) : null) })),
    ),
    'step',
  );
  let at = 0;
  return stages.map(({ steps, ...stage }) => ({
    ...stage,
    steps: (steps ?? []).map((step) => ({ ...step, key: keys[at++]! })),
  }));
}

/** Keys that are there twice, and references to steps that are not there. One that had no step before may stay. */
function checkKeys(steps: readonly Placed<StepInput>[], known: readonly KnownStep[]): InputIssue[] {
  const keys = new Set<string>();
  const doubles = steps.flatMap(({ path, item: { key } }) => {
    const isDouble = keys.has(key!);
    keys.add(key!);
    return isDouble ? [valueIssue([...path, 'key'], `the key '${key}' is given twice`)] : [];
  });
  const kept = new Set<string>();
  for (const { config } of known) for (const { key } of stepReferences(config)) kept.add(key);
  for (const { key } of known) kept.delete(key);
  const configs = steps.map(({ item }) => item.config);
  const dangling = danglingReferences(configs, ({ key }) => keys.has(key) || kept.has(key));
  const unknown = dangling.map(({ at, key }) =>
    valueIssue([...steps[at]!.path, 'config'], `no step of the augmentation has the key '${key}'`),
  );
  return [...doubles, ...unknown];
}

async function stagesOf(tx: Tx, augmentationId: string): Promise<[{ id: string }[], KnownStep[]]> {
  const stages = await tx.query<{ id: string }>(
    statement`select id from augmentation_stages where augmentation_id = ${augmentationId}`,
  );
  const steps = await tx.query<KnownStep>(statement`
    select p.id, p.key, p.config, p.tool_instance_id as "toolInstanceId", p.tool_slug as "toolSlug"
    from augmentation_steps p join augmentation_stages s on s.id = p.stage_id
    where s.augmentation_id = ${augmentationId}`);
  return [stages, steps];
}

function checkSizes(steps: readonly Placed<StepInput>[]): InputIssue[] {
  if (steps.length > limits.steps)
    return [valueIssue(PATH, `an augmentation may have at most ${limits.steps} steps, not ${steps.length}`)];
  const bytes = steps.reduce((sum, { item }) => sum + Buffer.byteLength(JSON.stringify(item.config ?? {})), 0);
  if (bytes <= limits.configBytes) return [];
  return [valueIssue(PATH, `the configs of all steps have at most ${limits.configBytes} bytes, not ${bytes}`)];
}

function checkIds<Item>(
  word: 'stage' | 'step',
  items: readonly Placed<Item>[],
  idOf: (item: Item) => string | null | undefined,
  known: readonly { id: string }[],
): InputIssue[] {
  const ids = new Set(known.map(({ id }) => id));
  const seen = new Set<string>();
  return items.flatMap(({ path, item }) => {
    const id = idOf(item);
    if (!id) return [];
    const place = [...path, `${word}Id`];
    const isDouble = seen.has(id);
    seen.add(id);
    if (isDouble) return [valueIssue(place, `the ${word} '${id}' is given twice`)];
    return ids.has(id) ? [] : [valueIssue(place, `the augmentation has no ${word} '${id}'`)];
  });
}

const INSTANCES = `select i.id, i.slug from (${instancesByTool('$1', '$2')}) i where i.id = any($3::text[])`;

async function checkInstances(
  tx: Tx,
  { orgId, workspaceId }: AppPlace,
  steps: readonly Placed<StepInput>[],
  known: readonly KnownStep[],
  slugs: Map<string, string>,
): Promise<InputIssue[]> {
  const before = new Set(known.map(({ toolInstanceId }) => toolInstanceId));
  const given = steps.flatMap(({ path, item: { toolInstanceId: id } }) =>
    id && !before.has(id) ? [{ path: [...path, 'toolInstanceId'], id }] : [],
  );
  if (given.length === 0) return otherTools(steps, slugs);
  const ids = [...new Set(given.map(({ id }) => id))];
  const found = await tx.query<{ id: string; slug: string }>({ text: INSTANCES, values: [orgId, workspaceId, ids] });
  for (const { id, slug } of found) slugs.set(id, slug);
  const pathOf = (id: string) => given.find((one) => one.id === id)!.path;
  demandInstances(
    tx,
    found.map(({ id }) => id),
    (id) => new InputError([noInstance(pathOf(id), id)]),
  );
  return [
    ...otherTools(steps, slugs),
    ...given.filter(({ id }) => !slugs.has(id)).map(({ path, id }) => noInstance(path, id)),
  ];
}

/** The issue of a tool instance that is not there. */
const noInstance = (path: Path, id: string): InputIssue =>
  valueIssue(path, `there is no tool instance '${id}' in the workspace`);

/** Steps that name a tool beside an instance of another one. */
const otherTools = (steps: readonly Placed<StepInput>[], slugs: ReadonlyMap<string, string>): InputIssue[] =>
  steps.flatMap(({ path, item: { toolInstanceId, toolSlug } }) => {
    const slug = slugs.get(toolInstanceId ?? '');
    return toolSlug && slug && slug !== toolSlug
      ? [valueIssue([...path, 'toolSlug'], `the tool instance belongs to the tool '${slug}'`)]
      : [];
  });

/** The ids of stages and steps, each in their order. */
export interface StageIds {
  stageIds: string[];
  stepIds: string[];
}

/** Writes the stages of an augmentation in place of those that it had. The caller has checked them. */
export function writeStages(tx: Tx, augmentationId: string, stages: readonly KeyedStage[]): StageIds {
  tx.write(statement`delete from augmentation_stages where augmentation_id = ${augmentationId}`);
  const stageRows = stages.map((stage, at) => ({
    id: stage.stageId ?? newId('augmentation_stage'),
    position: at + 1,
    name: stage.name,
    mode: stage.executionMode ?? 'sequential',
  }));
  const stepRows = stages.flatMap(({ steps }, stage) =>
    steps.map((step, at) => ({
      id: step.stepId ?? newId('augmentation_step'),
      stage: stageRows[stage]!.id,
      position: at + 1,
      key: step.key,
      name: step.name,
      type: step.stepType,
      config: step.config ?? {},
      model: step.logicalModelId ?? null,
      instance: step.toolInstanceId ?? null,
      tool: step.toolSlug ?? null,
      action: step.action ?? null,
    })),
  );
  tx.write(statement`insert into augmentation_stages (id, augmentation_id, position, name, execution_mode)
    select r.id, ${augmentationId}, r.position, r.name, r.mode
    from jsonb_to_recordset(${JSON.stringify(stageRows)}::jsonb) r(id text, position int, name text, mode text)`);
  tx.write(statement`insert into augmentation_steps
      (id, stage_id, position, key, name, step_type, config, logical_model_id, tool_instance_id, tool_slug, action)
    select r.id, r.stage, r.position, r.key, r.name, r.type, r.config, r.model, r.instance, r.tool, r.action
    from jsonb_to_recordset(${JSON.stringify(stepRows)}::jsonb)
      r(id text, stage text, position int, key text, name text, type text, config jsonb, model text, instance text,
        tool text, action text)`);
  return { stageIds: stageRows.map(({ id }) => id), stepIds: stepRows.map(({ id }) => id) };
}
