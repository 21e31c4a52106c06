/** Kinds of actions, by what starts them: an event, the clock, or somebody. */
export const kinds = ['trigger', 'scheduled', 'manual'] as const;

/** Pattern of a cron expression: five fields. Whether they make sense is checked apart. */
export const CRON = '[0-9A-Za-z*,/-]+(?: [0-9A-Za-z*,/-]+){4}';
export const MAX_CRON_LENGTH = 128;

/** Most bytes of what an action gives its augmentation. */
export const MAX_INPUT_BYTES = 64 * 1024;
