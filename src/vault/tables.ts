import type { GroupTables } from '../data/lent-tables.ts';

/** Secrets, and the credentials of tools, connections and users. */
export const tables: GroupTables = {
  owns: ['secrets', 'secret_versions', 'credentials', 'user_credentials'],
  lends: {
    credentials: {
      tools: 'which credentials an instance and a connection have; their values go through `Credentials`',
    },
  },
};
