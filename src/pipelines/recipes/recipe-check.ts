import { type ConstraintIssue, type Constraints, checkConstraints } from '../../kernel/constraints.ts';
import { InputError } from '../../kernel/errors.ts';
import { DEFAULT_NAMESPACE } from '../../kernel/place.ts';
import { snakeCase } from '../../kernel/snake-case.ts';
import { CRON, MAX_CRON_LENGTH, MAX_INPUT_BYTES } from '../actions/action.words.ts';
import { changedStart } from '../actions/action-start.ts';
import { limits as augmentationLimits } from '../augmentations/augmentation-stages.ts';
import { danglingReferences, type StepReference } from '../augmentations/step-keys.ts';
import type { RecipeAction, RecipeDefinition, RecipeParameter } from './recipe-document.ts';
import { valueIssues } from './recipe-parameters.ts';
import { augmentationsOfStages, newLocalIds, stepKeys } from './recipe-references.ts';

type Path = (string | number)[];

const wrong = (path: Path, error: string): ConstraintIssue => ({
  path,
  type: 'value_error',
  msg: `Value error, ${error}`,
  input: undefined,
  ctx: { error },
});

/** What is wrong with declared parameters whose form is right: names that repeat, and defaults that do not fit. */
export function declarationIssues(parameters: readonly RecipeParameter[]): ConstraintIssue[] {
  return parameters.flatMap((parameter, at) => [
    ...(parameters.findIndex(({ name }) => name === parameter.name) < at
      ? [wrong([at, 'name'], `the parameter '${parameter.name}' is declared twice`)]
      : []),
    ...((parameter.default ?? null) === null ? [] : valueIssues(parameter, parameter.default)).map((issue) => ({
      ...issue,
      path: [at, 'default', ...issue.path],
    })),
  ]);
}

/**
 * What is wrong with a definition whose form is right, and whose parameters have their values: keys that repeat or that
 * nothing has, and all that would be refused of a part that is made by itself.
 * @param written the same without identifiers in place of local names: what it marks as texts are no references
 */
export function definitionIssues(definition: RecipeDefinition, written = definition): ConstraintIssue[] {
  const { app, namespace, augmentations, stages, steps, endpoint, endpoints, actions } = definition;
  const stagesOf = new Map(augmentations.map(({ key }): [string, string] => [key, 'augmentation']));
  const above = augmentationsOfStages(definition);
  const placed = [
    ...(endpoint ? [{ path: ['endpoint'] as Path, part: endpoint }] : []),
    ...(endpoints ?? []).map((part, at) => ({ path: ['endpoints', at] as Path, part })),
  ];
  const placedActions = (actions ?? []).map((part, at) => ({ path: ['actions', at] as Path, part }));
  const runs = [...placed, ...placedActions];
  return [
    ...(namespace.slug === DEFAULT_NAMESPACE ? [wrong(['namespace', 'slug'], 'every workspace has it already')] : []),
    ...sizes(['app', 'metadata'], app.metadata, 256 * 1024),
    ...doubles('augmentations', augmentations),
    ...doubles('stages', stages),
    ...doublesOf(steps.map(({ key, stage }, at) => ({ path: ['steps', at, 'key'], word: key, of: above.get(stage) }))),
    ...referenceIssues(written),
    ...doublesOf(placed.map(({ path, part }) => ({ path: [...path, 'key'], word: part.key }))),
    ...doubles('actions', actions ?? []),
    ...unknown('stages', 'augmentation', stages, stagesOf),
    ...unknown('steps', 'stage', steps, new Map(stages.map(({ key }) => [key, 'stage']))),
    ...runs
      .filter(({ part }) => !stagesOf.has(part.augmentation))
      .map(({ path, part }) => wrong([...path, 'augmentation'], `no augmentation has the key '${part.augmentation}'`)),
    ...doublesOf(placed.map(({ path, part }) => ({ path: [...path, 'path'], word: part.path }))),
    ...augmentations.flatMap(({ metadata }, at) => sizes(['augmentations', at, 'metadata'], metadata, 256 * 1024)),
    ...placed.flatMap(({ path, part }) => sizes([...path, 'metadata'], part.metadata, 256 * 1024)),
    ...pipelineIssues(definition),
    ...placedActions.flatMap(({ path, part }) =>
      actionIssues(part).map((issue) => ({ ...issue, path: [...path, ...issue.path] })),
    ),
  ];
}

const doubles = (list: string, parts: readonly { key: string }[]) =>
  doublesOf(parts.map(({ key }, at) => ({ path: [list, at, 'key'], word: key })));

/** Words that are there twice in the same part `of` the definition. */
function doublesOf(placed: readonly { path: Path; word: string; of?: string | undefined }[]): ConstraintIssue[] {
  const seen = new Set<string>();
  return placed.flatMap(({ path, word, of }) => {
    const whole = `${of} ${word}`;
    if (seen.has(whole)) return [wrong(path, `'${word}' is listed twice`)];
    seen.add(whole);
    return [];
  });
}

/** References in configs to steps that are not there: `{{steps.KEY.field}}` is of the same augmentation. */
function referenceIssues(definition: RecipeDefinition): ConstraintIssue[] {
  const above = augmentationsOfStages(definition);
  const keys = stepKeys(definition);
  const all = newLocalIds(definition);
  const { steps } = definition;
  const isKnown = ({ kind, key }: StepReference, at: number) =>
    keys.get(above.get(steps[at]!.stage))?.has(key) === true || (kind === 'step' && all.has(`step.${key}`));
  const configs = steps.map(({ config }) => config);
  return danglingReferences(configs, isKnown).map(({ at, path, key }) =>
    wrong(['steps', at, 'config', ...path], `no step has the key '${key}'`),
  );
}

const unknown = <Name extends string>(
  list: string,
  name: Name,
  parts: readonly Record<Name, string>[],
  known: ReadonlyMap<string, unknown>,
): ConstraintIssue[] =>
  parts.flatMap((part, at) =>
    known.has(part[name]) ? [] : [wrong([list, at, name], `no ${name} has the key '${part[name]}'`)],
  );

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value ?? {}));

const sizes = (path: Path, value: unknown, most: number): ConstraintIssue[] =>
  bytesOf(value) > most ? [wrong(path, `it has at most ${most} bytes, not ${bytesOf(value)}`)] : [];

/** The bounds of one augmentation: see `augmentation-stages.ts`. */
function pipelineIssues({ augmentations, stages, steps }: RecipeDefinition): ConstraintIssue[] {
  const above = augmentationsOfStages({ stages });
  const counted = (keys: readonly (string | undefined)[]) => {
    const counts = new Map<string | undefined, number>();
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    return counts;
  };
  const stageCounts = counted(stages.map(({ augmentation }) => augmentation));
  const stepsOfStage = counted(steps.map(({ stage }) => stage));
  const stepsOfAll = counted(steps.map(({ stage }) => above.get(stage)));
  const bytes = new Map<string | undefined, number>();
  for (const { stage, config } of steps) {
    const key = above.get(stage);
    bytes.set(key, (bytes.get(key) ?? 0) + bytesOf(config));
  }
  const most = augmentationLimits;
  const bounded = (path: Path, what: string, count: number | undefined, limit: number) =>
    (count ?? 0) > limit ? [wrong(path, `it has at most ${limit} ${what}, not ${count}`)] : [];
  return [
    ...augmentations.flatMap(({ key }, at) => [
      ...bounded(['augmentations', at], 'stages', stageCounts.get(key), most.stages),
      ...bounded(['augmentations', at], 'steps', stepsOfAll.get(key), most.steps),
      ...bounded(['augmentations', at], 'bytes of configs', bytes.get(key), most.configBytes),
    ]),
    ...stages.flatMap(({ key }, at) => bounded(['stages', at], 'steps', stepsOfStage.get(key), most.stepsOfStage)),
    ...steps.flatMap(({ config }, at) => sizes(['steps', at, 'config'], config, most.stepConfigBytes)),
  ];
}

const CRON_BOUNDS: Constraints = { pattern: CRON, maxLength: MAX_CRON_LENGTH };

function actionIssues(action: RecipeAction): ConstraintIssue[] {
  const { cron, input } = action;
  const form = cron ? checkConstraints(cron, CRON_BOUNDS).map((issue) => ({ ...issue, path: ['cron'] as Path })) : [];
  const size = sizes(['input'], input, MAX_INPUT_BYTES);
  if (form.length + size.length > 0) return [...form, ...size];
  try {
    changedStart(null, startOf(action));
    return [];
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return error.issues.map((issue) => ({
      input: undefined,
      ...issue,
      path: issue.path.slice(1).map((step) => (typeof step === 'string' ? snakeCase(step) : step)),
    }));
  }
}

/** What starts an action, as its service takes it. */
export const startOf = ({ kind, trigger_event, cron, timezone }: RecipeAction) => ({
  kind,
  triggerEvent: trigger_event,
  cron,
  timezone,
});
