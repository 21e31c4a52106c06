import { invalidInput } from '../../kernel/errors.ts';
import { isTimezone, type StepLength, TimeZone } from '../../kernel/time-zone.ts';
import { addSpans, startOf, wholeSpansOf } from '../activity/time-spans.ts';

/** A value of a series. */
export interface Point {
  /** The start of the span. */
  timestamp: Date;
  value: number;
}

/** The starts of the spans of a series, oldest first, and the end of the last one. */
export type Borders = readonly [Date, ...Date[]];

/** What a series covers. */
export interface SpanRange {
  from?: Date | null;
  to?: Date | null;
  step: StepLength;
  /** The IANA time zone of its hours, days and months. */
  tz: string;
}

/** Most points of a series. */
export const MAX_POINTS = 2_000;
const DEFAULT_POINTS = 24;

/** What ends later is refused: the calendars end there. */
export const LATEST_TIME = Date.UTC(9999, 0);

/** Where hours, days and months begin. */
export type Calendar = Pick<TimeZone, 'startOf' | 'next' | 'previous'>;

const utc: Calendar = {
  startOf,
  next: (step, start) => addSpans(step, start, 1),
  previous: (step, start) => addSpans(step, start, -1),
};

/** The hours, days and months of an IANA time zone. @throws InputError at `tz` for any other text */
export function calendarOf(tz: string): Calendar {
  if (tz === 'UTC') return utc;
  if (!isTimezone(tz)) throw invalidInput(['tz'], `'${tz}' is not a time zone of the IANA database`);
  return TimeZone.of(tz);
}

/** The last spans before an end, which is the end of a span. */
export function lastSpans(calendar: Calendar, step: StepLength, count: number, end: Date): Borders {
  const borders: [Date, ...Date[]] = [end];
  for (let left = count; left > 0; left--) borders.unshift(calendar.previous(step, borders[0]));
  return borders;
}

/** The spans from the start of one to the end of one; `null` if they are more than `most`. */
export function spansBetween(
  calendar: Calendar,
  step: StepLength,
  { since, until }: { since: Date; until: Date },
  most: number,
): Borders | null {
  const borders: [Date, ...Date[]] = [since];
  for (let start = since; start < until; borders.push(start)) {
    if (borders.length > most) return null;
    start = calendar.next(step, start);
  }
  return borders;
}

/** The whole spans that contain a range. @throws InputError for an end before the start, and for too many spans */
export function bordersOf(calendar: Calendar, { from, to, step }: Omit<SpanRange, 'tz'>): Borders {
  const end = to ?? new Date();
  if (end.getTime() >= LATEST_TIME) throw invalidInput(['to'], 'it must be an earlier time');
  if (from && from > end) throw invalidInput([to ? 'to' : 'from'], 'the end is before the start');
  const last = calendar.startOf(step, end);
  // the end itself is not included
  const until = to && last.getTime() === to.getTime() ? last : calendar.next(step, last);
  if (!from) return lastSpans(calendar, step, DEFAULT_POINTS, until);
  const borders = spansBetween(calendar, step, { since: calendar.startOf(step, from), until }, MAX_POINTS);
  if (!borders) throw invalidInput(['from'], `a series has at most ${MAX_POINTS} points`);
  return borders;
}

/** The end of a series. */
export const endOf = (borders: Borders): Date => borders.at(-1)!;

/** Whether the spans of a series are those of UTC. */
export const areOfUtc = (step: StepLength, borders: Borders): boolean =>
  borders.every(
    (border, at) =>
      border.getTime() === (at === 0 ? startOf(step, border) : addSpans(step, borders[at - 1]!, 1)).getTime(),
  );

/** The spans of a series as spans of UTC that are summed: `at` is the start of the one that a part belongs to. */
export const partsOf = <Shortest extends 'minute' | 'quarter'>(
  step: StepLength,
  borders: Borders,
  shortest: Shortest,
) => {
  const lengths = step === 'hour' ? (['hour', shortest] as const) : (['day', 'hour', shortest] as const);
  return borders.slice(0, -1).flatMap((at, index) =>
    wholeSpansOf<'day' | 'hour' | Shortest>({ since: at, until: borders[index + 1]! }, lengths).map((part) => ({
      at,
      ...part,
    })),
  );
};

/** One point for each span, oldest first: 0 where there is no value. @param values by the time of the start */
export const pointsOf = (borders: Borders, values: ReadonlyMap<number, number>): Point[] =>
  borders.slice(0, -1).map((start) => ({ timestamp: start, value: values.get(start.getTime()) ?? 0 }));
