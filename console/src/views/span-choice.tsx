import { useState } from 'react';
import type { SeriesStep } from '../generated/documents';
import { useAfterEvents } from '../ground/live';
import { dayAfter, dayOf, instantOf } from '../ground/local-time';
import { timeZone } from '../ground/time';
import { t } from '../texts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const LONGEST = 3_660 * DAY;
const spans = {
  day: { step: 'HOUR', length: DAY },
  week: { step: 'HOUR', length: 7 * DAY },
  month: { step: 'DAY', length: 30 * DAY },
  quarter: { step: 'DAY', length: 90 * DAY },
  year: { step: 'MONTH', length: 365 * DAY },
} as const;
export type Span = keyof typeof spans;
/** What stands among the spans for two days that the reader chooses. */
const DATES = 'dates';

/** Which spans a view has. */
export interface Offer {
  /** The span where the address says none. */
  usual: Span;
  spans: readonly Span[];
  /** Numbers of this many days are kept, the current one included: no span begins before. Default: of all. */
  keptDays?: number;
}

export const allSpans = Object.keys(spans) as Span[];

/** What the address has of the span of numbers. */
export type SpanFilter = 'span' | 'from' | 'to';
type Search = Partial<Record<SpanFilter, string>>;

/** The span of numbers, and by what it is divided. */
export interface Range {
  step: SeriesStep;
  from: number;
  to: number;
}

/** Numbers are read again at most so often while things happen. */
const REFRESH_MS = 5_000;

export const keyIn = <Name extends string>(of: Readonly<Record<Name, unknown>>, name: string | undefined) =>
  (Object.keys(of) as Name[]).find((key) => key === name);

/** Two days as the address has them, else the last week. The last one is shown, too. */
const daysIn = ({ from, to }: Search, end: number): { from: string; to: string } => {
  const today = dayOf(end - 1, timeZone());
  return { from: from ?? dayAfter(today, -6), to: to ?? today };
};

const spanIn = ({ span }: Search, offer: Offer): Span => offer.spans.find((name) => name === span) ?? offer.usual;

/** The start of the first day of which numbers are kept. */
function firstKept(end: number, { keptDays }: Offer): number {
  if (keptDays === undefined) return -Infinity;
  return instantOf(dayAfter(dayOf(end - 1, timeZone()), 1 - keptDays), timeZone()) ?? -Infinity;
}

/** What is shown; `null` for days that are none, or the wrong way round, or more than ten years. */
export function rangeOf(search: Search, end: number, offer: Offer): Range | null {
  if (search.span !== DATES) {
    const { step, length } = spans[spanIn(search, offer)];
    return { step, from: Math.max(end - length, firstKept(end, offer)), to: end };
  }
  const days = daysIn(search, end);
  const [from, to] = [instantOf(days.from, timeZone()), instantOf(dayAfter(days.to, 1), timeZone())];
  if (from === null || to === null || to <= from || to - from > LONGEST) return null;
  const length = to - from;
  return { step: length <= 8 * DAY ? 'HOUR' : length <= 190 * DAY ? 'DAY' : 'MONTH', from, to };
}

/** Which span the numbers are of. */
export function SpanChoice({
  search,
  end,
  offer,
  onChange,
}: {
  search: Search;
  end: number;
  offer: Offer;
  onChange: (changes: Search) => void;
}) {
  const span = search.span === DATES ? DATES : spanIn(search, offer);
  const days = daysIn(search, end);
  // the days are in the address, so that whoever gets it sees the same
  const choose = (name: string) =>
    onChange(name === DATES ? { span: name, ...days } : { span: name, from: '', to: '' });
  return (
    <>
      <label>
        {t.analytics.span}{' '}
        <select value={span} onChange={(event) => choose(event.target.value)}>
          {[...offer.spans, DATES as typeof DATES].map((name) => (
            <option key={name} value={name}>
              {t.analytics.spans[name]}
            </option>
          ))}
        </select>
      </label>
      {span === DATES &&
        (['from', 'to'] as const).map((name) => (
          <label key={name}>
            {t[name]}{' '}
            <input
              type="date"
              required
              value={days[name]}
              onChange={({ target }) => target.value && onChange({ [name]: target.value })}
            />
          </label>
        ))}
    </>
  );
}

/** The end of what is shown, and a number that rises when it is to be read again. */
export function useTurns(again?: () => void) {
  // to the hour: the same question while the view is open
  const now = () => Math.floor(Date.now() / HOUR) * HOUR + HOUR;
  const [state, setState] = useState(() => ({ end: now(), turn: 0 }));
  useAfterEvents(() => {
    setState(({ turn }) => ({ end: now(), turn: turn + 1 }));
    again?.();
  }, REFRESH_MS);
  return state;
}
