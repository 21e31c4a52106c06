/** Statuses of an augmentation. */
export const statuses = ['draft', 'active', 'archived'] as const;

/** How the steps of a stage run: one after the other, or at the same time. */
export const executionModes = ['sequential', 'parallel'] as const;
