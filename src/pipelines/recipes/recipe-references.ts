import { newId } from '../../kernel/ids.ts';
import { endpointsOf, type RecipeDefinition } from './recipe-document.ts';
import { mapTexts } from './recipe-parameters.ts';

/**
 * The identifiers of what a recipe makes, by the local name: `app`, `namespace`, `augmentation.KEY`, … A step is
 * `step.AUGMENTATION.KEY`, and `step.KEY` too if no other augmentation has a step with that key.
 */
export type LocalIds = ReadonlyMap<string, string>;

const KEY = '[a-z0-9-]{1,80}';
const PART = `(?:augmentation|stage|step|endpoint|action)\\.${KEY}`;
/** What is around an app, in the document of a whole workspace. */
const AROUND = `workspace(?:\\.(?:namespace|environment|tool_instance|app)\\.${KEY})?`;
const REFERENCE = new RegExp(
  `\\{\\{(app|namespace|${PART}|step\\.${KEY}\\.${KEY}|${AROUND}|literal\\.[^{}]+)\\}\\}`,
  'g',
);
const LITERAL = 'literal.';

/** A text of an app as a recipe has it: what would be taken for a reference to a part is marked, so it stays a text. */
export const withoutReferences = (text: string, isLocal: (name: string) => boolean): string =>
  text.replaceAll(REFERENCE, (match, name: string) =>
    name.startsWith(LITERAL) || isLocal(name) ? `{{${LITERAL}${name}}}` : match,
  );

/** A text that stays as it is, although it looks like a reference. */
export const asLiteral = (reference: string): string => `{{${LITERAL}${reference.slice(2)}`;

/** The local name of a step, whose key is unique in its augmentation alone. */
export const stepName = (augmentation: string | undefined, key: string): string => `step.${augmentation}.${key}`;

/** The key of the augmentation that each stage belongs to. */
export const augmentationsOfStages = ({ stages }: Pick<RecipeDefinition, 'stages'>): ReadonlyMap<string, string> =>
  new Map(stages.map(({ key, augmentation }) => [key, augmentation]));

/** The keys of the steps of each augmentation. */
export function stepKeys(definition: RecipeDefinition): ReadonlyMap<string | undefined, ReadonlySet<string>> {
  const above = augmentationsOfStages(definition);
  const keys = new Map<string | undefined, Set<string>>();
  for (const { stage, key } of definition.steps) {
    const augmentation = above.get(stage);
    keys.set(augmentation, (keys.get(augmentation) ?? new Set()).add(key));
  }
  return keys;
}

/** New identifiers for all parts of a definition. Those of one kind rise in the order of the parts. */
export function newLocalIds(definition: RecipeDefinition): LocalIds {
  const { augmentations, stages, steps, actions } = definition;
  const above = augmentationsOfStages(definition);
  const stepIds = steps.map(({ stage, key }) => [stepName(above.get(stage), key), newId('augmentation_step')] as const);
  const times = new Map<string, number>();
  for (const { key } of steps) times.set(key, (times.get(key) ?? 0) + 1);
  return new Map([
    ['namespace', newId('namespace')],
    ['app', newId('app')],
    ...augmentations.map(({ key }) => [`augmentation.${key}`, newId('augmentation')] as const),
    ...stages.map(({ key }) => [`stage.${key}`, newId('augmentation_stage')] as const),
    ...stepIds,
    ...steps.flatMap(({ key }, at) => (times.get(key) === 1 ? [[`step.${key}`, stepIds[at]![1]] as const] : [])),
    ...endpointsOf(definition).map(({ key }) => [`endpoint.${key}`, newId('endpoint')] as const),
    ...(actions ?? []).map(({ key }) => [`action.${key}`, newId('action')] as const),
  ]);
}

/**
 * The definition with identifiers in place of references such as `{{app}}`. Those to nothing stay, as does
 * `{{step.KEY}}` in a step of the same augmentation: there it refers to the step by its key.
 */
export function withIds(definition: RecipeDefinition, ids: LocalIds): RecipeDefinition {
  const { steps, ...rest } = definition;
  const above = augmentationsOfStages(definition);
  const keys = stepKeys(definition);
  return {
    ...withReferences(rest, ids),
    steps: steps.map((step) => withReferences(step, ids, keys.get(above.get(step.stage)))),
  };
}

/** A part with identifiers in place of references. @param own keys of steps that texts go on naming by their keys */
export function withReferences<Value>(value: Value, ids: LocalIds, own?: ReadonlySet<string>): Value {
  const idOf = (match: string, name: string): string => {
    if (name.startsWith(LITERAL)) return `{{${name.slice(LITERAL.length)}}}`;
    return (isOwnStep(name, own) ? null : ids.get(name)) ?? match;
  };
  return mapTexts(value, (text) => text.replaceAll(REFERENCE, idOf), { keys: true });
}

/** Whether a local name is `step.KEY` of a step with one of the keys. */
export const isOwnStep = (name: string, keys: ReadonlySet<string> | undefined): boolean =>
  name.startsWith('step.') && keys?.has(name.slice('step.'.length)) === true;
