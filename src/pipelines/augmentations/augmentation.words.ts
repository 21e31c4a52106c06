/** Statuses of an augmentation. */
export const statuses = ['draft', 'active', 'archived'] as const;

/** Pattern of the keys of steps and of other local names, and their longest length. */
export const KEY = '[a-z0-9]+(?:-[a-z0-9]+)*';
export const MAX_KEY_LENGTH = 80;

/** Longest name of an action of a tool. */
export const MAX_ACTION_LENGTH = 255;

/** How the steps of a stage run: one after the other, or at the same time. */
export const executionModes = ['sequential', 'parallel'] as const;
