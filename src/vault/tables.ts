import type { GroupTables } from '../data/lent-tables.ts';

/** Secrets, and the credentials of tools and connections. */
export const tables: GroupTables = {
  owns: ['secrets', 'secret_versions', 'credentials'],
  lends: {
    credentials: {
      tools: 'which credentials an instance and a connection have; their values go through `Credentials`',
    },
  },
};
