import type { Turn } from './retention.ts';
import type { Runtime } from './services.ts';

/** What must be over before the row of a workspace or an organization goes: nothing else knows of it afterwards. */
const ENDINGS = [
  'connectionRemoval',
  'buckets',
  'knowledgeGraphRemoval',
  'artifactRemoval',
  'historyRetention',
  'modelUsage',
] as const;

/**
 * The owners that declare retention, in the order in which they have their turns (see `Owner`). THE place to add an
 * owner: the service does not start while one is missing.
 */
export const retentionOrder: readonly Turn<keyof Runtime | 'storedAnswers'>[] = [
  // what workspaces and organizations have elsewhere, in files, and in rows that are too many to go with theirs
  ...ENDINGS.map((owner) => ({ owner })),
  // everything else in a place goes with its row; an organization takes what workspaces it still has along
  { owner: 'workspaces', needs: ENDINGS },
  { owner: 'organizations', needs: ENDINGS },
  { owner: 'files' },
  { owner: 'artifacts' },
  // accounts are emptied before their notifications and their links to identity providers go
  { owner: 'users' },
  { owner: 'notifications' },
  { owner: 'signInProviders' },
  { owner: 'scimUsers' },
  // these depend on no other
  { owner: 'secrets' },
  { owner: 'apiTokens' },
  { owner: 'applicationGrants' },
  { owner: 'scimTokens' },
  { owner: 'sessions' },
  { owner: 'challenges' },
  { owner: 'emailProofs' },
  { owner: 'auth' },
  { owner: 'oauthStates' },
  { owner: 'connectLinks' },
  { owner: 'toolConfirmations' },
  { owner: 'executions' },
  { owner: 'events' },
  { owner: 'serviceStatus' },
  { owner: 'webhookDeliveries' },
  { owner: 'auditStreamDeliveries' },
  { owner: 'activity' },
  { owner: 'storedAnswers' },
];
