import type { GroupTables } from '../data/lent-tables.ts';

/** What apps do: augmentations, endpoints, actions, and their runs. */
export const tables: GroupTables = {
  owns: [
    'augmentations',
    'augmentation_stages',
    'augmentation_steps',
    'endpoints',
    'actions',
    'executions',
    'organization_recipes',
    'organization_recipe_versions',
  ],
  lends: {},
};
