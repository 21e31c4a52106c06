/** Statuses of a tool (defaults §4). */
export const statuses = ['active', 'beta', 'deprecated', 'disabled'] as const;

/** Categories that the service itself uses; an organization may use other words. */
export const toolCategories = [
  'communication',
  'productivity',
  'developer',
  'data',
  'crm',
  'storage',
  'search',
  'ai',
  'finance',
  'marketing',
  'custom',
] as const;

/** Which custom actions the instances of a tool may have. */
export const customActionTypes = ['none', 'custom_rest', 'data_transform', 'mcp'] as const;

/** Pattern of a slug. */
export const SLUG = '[a-z0-9]+(?:[-_][a-z0-9]+)*';
