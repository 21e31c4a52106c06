import type { GroupTables } from '../data/lent-tables.ts';

/** Releases and what is deployed of them. */
export const tables: GroupTables = {
  owns: ['releases', 'environments', 'environment_slots', 'deployments'],
  lends: {
    releases: {
      tools: 'what a release of an app requires',
      insight: 'versions in notifications',
    },
    environments: {
      access: 'the workspace of a token for environments',
      vault: 'a secret is made while its environment is locked',
      insight: 'names in notifications',
    },
  },
};
