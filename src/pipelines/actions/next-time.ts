import { Cron } from 'croner';

/**
 * The next time after another one that a cron expression (minute, hour, day of the month, month, day of the week) names
 * in an IANA time zone. A time that a change of the clocks skips is moved by that change; one that the change repeats
 * counts once.
 * @returns `null` if there is none, as for 30 February
 * @throws Error for an expression or a time zone that is not valid
 */
export const nextTime = (cron: string, timezone: string, after: Date): Date | null =>
  new Cron(cron, { timezone, mode: '5-part', paused: true }).nextRun(after);
