import type { RecipeDefinition } from './recipe-document.ts';
import { mapTexts } from './recipe-parameters.ts';
import { augmentationsOfStages, stepName } from './recipe-references.ts';

/** A text that names a secret. */
export const SECRET = /\{\{secret\.([^{}]{1,255})\}\}/g;

/** The local names of the parts that use something, by its name. */
export type Users = ReadonlyMap<string, string[]>;

/** What a definition uses and does not make, each with the parts that use it: `app`, `step.AUGMENTATION.KEY`, … */
export interface Uses {
  tools: Users;
  models: Users;
  secrets: Users;
}

/** What a definition uses. Its parameters must have their values. */
export function usesOf(definition: RecipeDefinition): Uses {
  const [tools, models, secrets] = [
    new Map<string, string[]>(),
    new Map<string, string[]>(),
    new Map<string, string[]>(),
  ];
  const add = (users: Map<string, string[]>, name: string, part: string): void => {
    const parts = users.get(name);
    if (!parts) users.set(name, [part]);
    else if (parts.at(-1) !== part) parts.push(part);
  };
  const mention = (part: string, texts: object): void => {
    mapTexts(texts, (text) => {
      for (const [, name] of text.matchAll(SECRET)) add(secrets, name!, part);
      return text;
    });
  };
  const { app, namespace, augmentations, stages, steps, endpoint, endpoints, actions } = definition;
  const above = augmentationsOfStages(definition);
  mention('app', app);
  mention('namespace', namespace);
  for (const one of augmentations) mention(`augmentation.${one.key}`, one);
  for (const one of stages) mention(`stage.${one.key}`, one);
  for (const step of steps) {
    const part = stepName(above.get(step.stage), step.key);
    if (step.tool) add(tools, step.tool, part);
    if (step.model) add(models, step.model, part);
    mention(part, step);
  }
  for (const one of [...(endpoint ? [endpoint] : []), ...(endpoints ?? [])]) mention(`endpoint.${one.key}`, one);
  for (const one of actions ?? []) mention(`action.${one.key}`, one);
  return { tools, models, secrets };
}
