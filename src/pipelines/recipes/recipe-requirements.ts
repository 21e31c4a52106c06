import type { RecipeDefinition, RecipeRequirements } from './recipe-document.ts';
import { type Users, usesOf } from './recipe-uses.ts';

const sorted = (users: Users): string[] => [...users.keys()].sort();

/** What a definition uses and does not make, each once and sorted. Its parameters must have their values. */
export function requirementsOf(definition: RecipeDefinition): RecipeRequirements {
  const { tools, models, secrets } = usesOf(definition);
  return { tools: sorted(tools), models: sorted(models), secrets: sorted(secrets) };
}
