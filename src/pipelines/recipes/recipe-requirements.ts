import type { RecipeDefinition, RecipeRequirements } from './recipe-document.ts';
import { mapTexts } from './recipe-parameters.ts';

const SECRET = /\{\{secret\.([^{}]{1,255})\}\}/g;

/** What a definition uses and does not make, each once and sorted. Its parameters must have their values. */
export function requirementsOf(definition: RecipeDefinition): RecipeRequirements {
  const secrets = new Set<string>();
  mapTexts(definition, (text) => {
    for (const [, name] of text.matchAll(SECRET)) secrets.add(name!);
    return text;
  });
  const { steps } = definition;
  return {
    tools: [...new Set(steps.flatMap(({ tool }) => tool ?? []))].sort(),
    models: [...new Set(steps.flatMap(({ model }) => model ?? []))].sort(),
    secrets: [...secrets].sort(),
  };
}
