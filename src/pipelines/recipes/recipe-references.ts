import { newId } from '../../kernel/ids.ts';
import { endpointsOf, type RecipeDefinition } from './recipe-document.ts';
import { mapTexts } from './recipe-parameters.ts';

/** The identifiers of what a recipe makes, by the local name: `app`, `namespace`, `augmentation.KEY`, `step.KEY`, … */
export type LocalIds = ReadonlyMap<string, string>;

const REFERENCE = /\{\{(app|namespace|(?:augmentation|stage|step|endpoint|action)\.[a-z0-9-]{1,80})\}\}/g;

/** New identifiers for all parts of a definition. Those of one kind rise in the order of the parts. */
export function newLocalIds(definition: RecipeDefinition): LocalIds {
  const { augmentations, stages, steps, actions } = definition;
  return new Map([
    ['namespace', newId('namespace')],
    ['app', newId('app')],
    ...augmentations.map(({ key }) => [`augmentation.${key}`, newId('augmentation')] as const),
    ...stages.map(({ key }) => [`stage.${key}`, newId('augmentation_stage')] as const),
    ...steps.map(({ key }) => [`step.${key}`, newId('augmentation_step')] as const),
    ...endpointsOf(definition).map(({ key }) => [`endpoint.${key}`, newId('endpoint')] as const),
    ...(actions ?? []).map(({ key }) => [`action.${key}`, newId('action')] as const),
  ]);
}

/** The definition with identifiers in place of references such as `{{app}}`. Those to nothing stay. */
export const withIds = (definition: RecipeDefinition, ids: LocalIds): RecipeDefinition =>
  mapTexts(definition, (text) => text.replaceAll(REFERENCE, (match, name: string) => ids.get(name) ?? match), {
    keys: true,
  });
