import type { GroupTables } from '../data/lent-tables.ts';

/** The catalogue of tools, what is set up of them, and connections. */
export const tables: GroupTables = {
  owns: ['tools', 'tool_instances', 'connections', 'oauth_states', 'connect_links', 'tool_confirmations'],
  lends: {
    connections: {
      tenancy: 'a place ends for good when its connections have ended at their providers',
    },
  },
};
