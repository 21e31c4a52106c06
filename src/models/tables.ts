import type { GroupTables } from '../data/lent-tables.ts';

/** The catalogue of models, the accounts at their providers, and who may use them. */
export const tables: GroupTables = {
  owns: [
    'logical_models',
    'model_targets',
    'model_entitlements',
    'model_usage',
    'model_usage_sums',
    'provider_accounts',
  ],
  lends: {},
};
