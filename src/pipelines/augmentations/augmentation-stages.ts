import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import type { AppPlace } from '../../kernel/checked-place.ts';
import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { modelsOf } from '../../models/views.ts';
import { instancesOf } from '../../tools/views.ts';

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
  name: string;
  stepType: string;
  config?: Record<string, unknown> | null;
  logicalModelId?: string | null;
  toolInstanceId?: string | null;
}

/** A stage as a caller gives it. Its position is that in the list. */
export interface StageInput {
  /** Keeps a stage of the augmentation. Without it the stage is new. */
  stageId?: string | null;
  name: string;
  executionMode?: string | null;
  steps?: StepInput[] | null;
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
interface KnownStep extends Record<ReferenceName, string | null> {
  id: string;
}

/**
 * Checks the stages that replace others: bounds over all of them, ids that are kept, and the models and tool instances
 * that steps name. What a step named before may be gone meanwhile.
 * @param augmentationId the augmentation, which is locked; `null` for a new one
 * @throws InputError
 */
export async function checkStages(
  tx: Tx,
  place: AppPlace,
  stages: readonly StageInput[],
  augmentationId: string | null,
): Promise<void> {
  const steps = stepsOf(stages);
  const [known, knownSteps] = augmentationId ? await stagesOf(tx, augmentationId) : [[], []];
  const placed = stages.map((item, at): Placed<StageInput> => ({ path: [...PATH, at], item }));
  const issues = [
    ...checkSizes(steps),
    ...checkIds('stage', placed, ({ stageId }) => stageId, known),
    ...checkIds('step', steps, ({ stepId }) => stepId, knownSteps),
    ...(await checkReferences(tx, place, steps, knownSteps)),
  ];
  if (issues.length > 0) throw new InputError(issues);
}

async function stagesOf(tx: Tx, augmentationId: string): Promise<[{ id: string }[], KnownStep[]]> {
  const stages = await tx.query<{ id: string }>(
    statement`select id from augmentation_stages where augmentation_id = ${augmentationId}`,
  );
  const steps = await tx.query<KnownStep>(statement`
    select p.id, p.logical_model_id as "logicalModelId", p.tool_instance_id as "toolInstanceId"
    from augmentation_steps p join augmentation_stages s on s.id = p.stage_id
    where s.augmentation_id = ${augmentationId}`);
  return [stages, steps];
}

function checkSizes(steps: readonly Placed<StepInput>[]): InputIssue[] {
  if (steps.length > limits.steps)
    return [valueIssue(PATH, `an augmentation has at most ${limits.steps} steps, not ${steps.length}`)];
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

type ReferenceName = 'logicalModelId' | 'toolInstanceId';

const NAMED = `select array(select m.id from (${modelsOf('$1')}) m where m.id = any($3::text[])) as models,
  array(select i.id from (${instancesOf('$1', '$2')}) i where i.id = any($4::text[])) as instances`;

async function checkReferences(
  tx: Tx,
  { orgId, workspaceId }: AppPlace,
  steps: readonly Placed<StepInput>[],
  known: readonly KnownStep[],
): Promise<InputIssue[]> {
  const given = (name: ReferenceName) => {
    const before = new Set(known.map((step) => step[name]));
    return steps.flatMap(({ path, item: { [name]: id } }) =>
      id && !before.has(id) ? [{ path: [...path, name], id }] : [],
    );
  };
  const models = given('logicalModelId');
  const instances = given('toolInstanceId');
  if (models.length + instances.length === 0) return [];
  const [found] = await tx.query<{ models: string[]; instances: string[] }>({
    text: NAMED,
    values: [orgId, workspaceId, models.map(({ id }) => id), instances.map(({ id }) => id)],
  });
  return [
    ...models
      .filter(({ id }) => !found?.models.includes(id))
      .map(({ path, id }) => valueIssue(path, `there is no model '${id}' in the organization`)),
    ...instances
      .filter(({ id }) => !found?.instances.includes(id))
      .map(({ path, id }) => valueIssue(path, `there is no tool instance '${id}' in the workspace`)),
  ];
}

/** The ids of stages and steps, each in their order. */
export interface StageIds {
  stageIds: string[];
  stepIds: string[];
}

/** Writes the stages of an augmentation in place of those that it had. The caller has checked them. */
export function writeStages(tx: Tx, augmentationId: string, stages: readonly StageInput[]): StageIds {
  tx.write(statement`delete from augmentation_stages where augmentation_id = ${augmentationId}`);
  const stageRows = stages.map((stage, at) => ({
    id: stage.stageId ?? newId('augmentation_stage'),
    position: at + 1,
    name: stage.name,
    mode: stage.executionMode ?? 'sequential',
  }));
  const stepRows = stages.flatMap(({ steps }, stage) =>
    (steps ?? []).map((step, at) => ({
      id: step.stepId ?? newId('augmentation_step'),
      stage: stageRows[stage]!.id,
      position: at + 1,
      name: step.name,
      type: step.stepType,
      config: step.config ?? {},
      model: step.logicalModelId ?? null,
      instance: step.toolInstanceId ?? null,
    })),
  );
  tx.write(statement`insert into augmentation_stages (id, augmentation_id, position, name, execution_mode)
    select r.id, ${augmentationId}, r.position, r.name, r.mode
    from jsonb_to_recordset(${JSON.stringify(stageRows)}::jsonb) r(id text, position int, name text, mode text)`);
  tx.write(statement`insert into augmentation_steps
      (id, stage_id, position, name, step_type, config, logical_model_id, tool_instance_id)
    select r.id, r.stage, r.position, r.name, r.type, r.config, r.model, r.instance
    from jsonb_to_recordset(${JSON.stringify(stepRows)}::jsonb)
      r(id text, stage text, position int, name text, type text, config jsonb, model text, instance text)`);
  return { stageIds: stageRows.map(({ id }) => id), stepIds: stepRows.map(({ id }) => id) };
}
