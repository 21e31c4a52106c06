import type { RecipeCategoryName, recipeParameterTypes } from './recipe.words.ts';

/** What the one who applies a recipe may choose. `{{parameters.NAME}}` in a text of the definition stands for it. */
export interface RecipeParameter {
  name: string;
  type: (typeof recipeParameterTypes)[number];
  description?: string | null;
  /** Without a default, it must be given. */
  default?: unknown;
  enum?: string[] | null;
  minimum?: number | null;
  maximum?: number | null;
  max_length?: number | null;
}

interface NamedPart {
  name: string;
  description?: string | null;
}

/** The app that a recipe makes. */
export interface RecipeApp extends NamedPart {
  metadata?: Record<string, unknown> | null;
}

/** The namespace that it makes beside the app. */
export interface RecipeNamespace extends NamedPart {
  slug?: string | null;
}

/** An augmentation, known in the recipe by its key. */
export interface RecipeAugmentation extends NamedPart {
  key: string;
  status?: string | null;
  metadata?: Record<string, unknown> | null;
}

/** A stage of the augmentation with that key. Stages of one augmentation are in their order. */
export interface RecipeStage {
  key: string;
  augmentation: string;
  name: string;
  execution_mode?: string | null;
}

/** A step of the stage with that key. Steps of one stage are in their order. */
export interface RecipeStep {
  key: string;
  stage: string;
  name: string;
  step_type: string;
  config?: Record<string, unknown> | null;
  /** The logical model that it uses. */
  model?: string | null;
  /** The slug of the tool of which it uses an instance. */
  tool?: string | null;
  /** The name of that instance, if it matters which. */
  tool_instance?: string | null;
  /** The action of the tool that it calls. */
  action?: string | null;
}

/** An endpoint that runs the augmentation with that key. */
export interface RecipeEndpoint extends NamedPart {
  key: string;
  augmentation: string;
  path: string;
  method?: string | null;
  enabled?: boolean | null;
  metadata?: Record<string, unknown> | null;
}

/** An action that runs the augmentation with that key. */
export interface RecipeAction extends NamedPart {
  key: string;
  augmentation: string;
  kind?: string | null;
  trigger_event?: string | null;
  cron?: string | null;
  timezone?: string | null;
  enabled?: boolean | null;
  input?: Record<string, unknown> | null;
}

/** What a recipe makes. Parts name each other by their keys. */
export interface RecipeDefinition {
  app: RecipeApp;
  namespace: RecipeNamespace;
  augmentations: RecipeAugmentation[];
  stages: RecipeStage[];
  steps: RecipeStep[];
  /** The main endpoint. */
  endpoint?: RecipeEndpoint | null;
  /** Further ones. */
  endpoints?: RecipeEndpoint[] | null;
  actions?: RecipeAction[] | null;
}

/** What a recipe uses and does not make: slugs of tools, identifiers of models, names of secrets. */
export interface RecipeRequirements {
  tools: string[];
  models: string[];
  secrets: string[];
}

/** A recipe as its data file, or an export, has it: the form that `/schemas/recipe.json` describes. */
export interface RecipeDocument {
  id: string;
  name: string;
  description: string;
  category: RecipeCategoryName;
  icon: string;
  tags: string[];
  needs_embedding: boolean;
  version: string;
  parameters: RecipeParameter[];
  definition: RecipeDefinition;
}

/** Whether an action starts by the clock as soon as it is made. */
export const isRunning = ({ kind, enabled }: RecipeAction): boolean => kind === 'scheduled' && enabled !== false;

/** All endpoints of a definition, the main one first. */
export const endpointsOf = ({ endpoint, endpoints }: RecipeDefinition): RecipeEndpoint[] => [
  ...(endpoint ? [endpoint] : []),
  ...(endpoints ?? []),
];
