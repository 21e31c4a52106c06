import type { Action } from '../../generated/prisma/client.ts';
import { InputError, type InputIssue, valueIssue } from '../../kernel/errors.ts';
import { isEventName } from '../../kernel/event-types.ts';
import { isTimezone } from '../../kernel/time-zone.ts';
import { nextTime } from './next-time.ts';

/** What starts an action. */
export interface ActionStart extends Pick<Action, 'triggerEvent' | 'cron' | 'timezone'> {
  /** `manual`, `trigger` or `scheduled`. */
  kind: string;
}

/** What a caller gives of it. */
export type StartInput = { [Key in keyof ActionStart]?: ActionStart[Key] | null };

const MANUAL: ActionStart = { kind: 'manual', triggerEvent: null, cron: null, timezone: null };

/**
 * What starts an action after a change. Another kind ends what belonged to the kind before.
 * @throws InputError for what the kind needs and lacks, or does not have, and for values that are not valid
 */
export function changedStart(before: ActionStart | null, input: StartInput): ActionStart {
  const kind = input.kind ?? before?.kind ?? MANUAL.kind;
  const kept = before?.kind === kind ? before : MANUAL;
  const given = (name: 'triggerEvent' | 'cron' | 'timezone') => (input[name] === undefined ? kept[name] : input[name]);
  const isScheduled = kind === 'scheduled';
  const start = {
    kind,
    triggerEvent: given('triggerEvent'),
    cron: given('cron'),
    timezone: given('timezone') ?? (isScheduled ? 'UTC' : null),
  };
  const issues = [
    ...checkBelongs(kind === 'trigger', 'triggerEvent', start.triggerEvent, `only an action of the kind 'trigger'`),
    ...checkBelongs(isScheduled, 'cron', start.cron, `only an action of the kind 'scheduled'`),
    ...checkBelongs(isScheduled, 'timezone', start.timezone, `only an action of the kind 'scheduled'`),
    ...(start.triggerEvent !== null && !isEventName(start.triggerEvent)
      ? [issueAt('triggerEvent', `'${start.triggerEvent}' is not an event type`)]
      : []),
    ...checkTimes(start),
  ];
  if (issues.length > 0) throw new InputError(issues);
  return start;
}

const issueAt = (name: string, error: string): InputIssue => valueIssue(['input', name], error);

function checkBelongs(belongs: boolean, name: string, value: string | null, who: string): InputIssue[] {
  if (belongs && value === null) return [issueAt(name, 'an action of this kind requires it')];
  return !belongs && value !== null ? [issueAt(name, `${who} may have it`)] : [];
}

function checkTimes({ cron, timezone }: ActionStart): InputIssue[] {
  if (timezone !== null && !isTimezone(timezone))
    return [issueAt('timezone', `'${timezone}' is not a time zone of the IANA database`)];
  if (cron === null || timezone === null) return [];
  try {
    if (nextTime(cron, timezone, new Date())) return [];
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return [issueAt('cron', 'the expression is not valid: minute, hour, day of the month, month, day of the week')];
  }
  return [issueAt('cron', 'the expression matches no time')];
}
