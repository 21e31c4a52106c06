import type { GroupTables } from '../data/lent-tables.ts';

/** Organizations, workspaces and their parts are what everything else is in. */
export const tables: GroupTables = {
  owns: [
    'organizations',
    'organization_members',
    'invitations',
    'workspaces',
    'workspace_members',
    'namespaces',
    'apps',
  ],
  lends: {
    organizations: {
      access: 'the gate asks whether it exists, with the role',
      identity: 'what works in it ends with it, and mails and records have its name',
      'identity (writes)': 'whether its members have to sign in at its identity provider',
      tools: 'contents of deleted places are not shown and not refreshed',
      insight: 'names in notifications, counts, and what ends with it',
    },
    organization_members: {
      access: 'the role of a caller in the gate',
      'access (writes)': 'when a member first uses the organization',
      vault: 'who may see a secret',
      identity: 'tokens, sessions and links are of members',
      'identity (writes)': 'roles that an identity provider gives',
      insight: 'counts',
    },
    invitations: { identity: 'consent is left out only where a user has come by themselves' },
    workspaces: {
      access: 'the gate asks whether it exists, with the role',
      vault: 'secrets of deleted places are neither read, opened nor noticed',
      identity: 'where a token works, and where a user starts',
      tools: 'contents of deleted places are not shown and not refreshed',
      knowledge: 'a download ends with its workspace, and artifacts are searched in its language and by its model',
      insight: 'names in notifications, and counts',
    },
    workspace_members: {
      access: 'the role of a caller in the gate',
      vault: 'who may see a secret',
      identity: 'roles that an identity provider gives',
      'identity (writes)': 'roles that an identity provider gives',
      tools: 'which instances a list shows',
      insight: 'counts',
    },
    namespaces: {
      access: 'the id behind `default`, and the workspace of a token',
      vault: 'a secret is made while its namespace is locked',
      tools: 'an instance is made while its namespace is locked',
      knowledge: 'content is made while its namespace is locked, and searches are of some of them',
      pipelines: 'the namespace that a recipe makes is locked',
      'pipelines (writes)': 'a recipe makes one with everything in it, in one change',
      insight: 'counts',
    },
    apps: {
      access: 'whether a part of a workspace is there',
      identity: 'a token is made while its app is locked',
      tools: 'what an app requires',
      knowledge: 'a graph is changed while its app is locked',
      delivery: 'a deployment locks its app',
      'delivery (writes)': 'the number of the last release is counted at the app',
      pipelines: 'parts are made while their app is locked',
      'pipelines (writes)': 'a recipe makes one with everything in it, in one change',
      insight: 'names in notifications, and counts',
    },
  },
};
