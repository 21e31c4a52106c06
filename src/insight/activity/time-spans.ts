/** A part of time: from its start, which it includes, to its end, which it does not. `null`: without an end. */
export interface TimeRange {
  since: Date | null;
  until: Date | null;
}

/** A range with both ends. */
export interface Between {
  since: Date;
  until: Date;
}

/** Lengths of time that records are summed by, in UTC. */
export const spans = ['minute', 'hour', 'day', 'month'] as const;
export type Span = (typeof spans)[number];

/** A span by its start. */
export interface SpanAt {
  span: Span;
  start: Date;
}

/** What a range has of a span that it does not contain as a whole. */
export interface PartOfSpan {
  of: SpanAt;
  /** The next longer span, of which that is a part; `null` for a month. */
  within: SpanAt | null;
  /** The range itself. */
  range: Between;
  /**
   * What of it consists of whole spans of the next shorter length: these, or if there are fewer of the others, all of
   * the span `less` them. The rest of it are parts of spans of the next shorter length.
   */
  whole: (Between & { span: Span; less: (Between & { span: Span }) | null }) | null;
}

/** A range as whole months, and the parts of months, days, hours and minutes around them. */
export interface Spanned {
  months: TimeRange | null;
  parts: readonly PartOfSpan[];
}

/** A length of time that is summed somewhere: runs are summed by quarters of an hour, too. */
export type Length = Span | 'quarter';

const MS: Readonly<Record<Exclude<Length, 'month'>, number>> = {
  minute: 60_000,
  quarter: 900_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** A span has the sums of about as many kinds of records as this number of its parts. */
const LONGER = 2;

/** The start of the span that contains a time. */
export function startOf(span: Length, time: Date): Date {
  if (span === 'month') return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth(), 1));
  return new Date(Math.floor(time.getTime() / MS[span]) * MS[span]);
}

/** The start of a span some spans later. */
export function addSpans(span: Length, start: Date, count: number): Date {
  if (span === 'month') return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + count, 1));
  return new Date(start.getTime() + count * MS[span]);
}

function ceil(span: Length, time: Date): Date {
  const start = startOf(span, time);
  return start.getTime() === time.getTime() ? start : addSpans(span, start, 1);
}

/** The next shorter span. */
const shorter = (span: Span) => (spans[spans.indexOf(span) - 1] ?? null) as Exclude<Span, 'month'> | null;

/** The next longer span. */
export const longer = (span: Span): Span | null => spans[spans.indexOf(span) + 1] ?? null;

const isEmpty = ({ since, until }: TimeRange): boolean => since !== null && until !== null && since >= until;

/** The part of a range that consists of whole spans, and what is before and after it. */
function cut(span: Length, range: Between): { whole: Between | null; rest: Between[] };
function cut(span: Length, range: TimeRange): { whole: TimeRange | null; rest: Between[] };
function cut(span: Length, { since, until }: TimeRange): { whole: TimeRange | null; rest: Between[] } {
  const whole = { since: since && ceil(span, since), until: until && startOf(span, until) };
  if (since && until && isEmpty(whole)) {
    // without a whole span, it is in one of them, or in two neighbours
    const border = startOf(span, until);
    const rest =
      since < border && border < until
        ? [
            { since, until: border },
            { since: border, until },
          ]
        : null;
    return { whole: null, rest: rest ?? [{ since, until }] };
  }
  const before = since && { since, until: whole.since! };
  const after = until && { since: whole.until!, until };
  return { whole, rest: [before, after].filter((part) => part !== null && !isEmpty(part)) as Between[] };
}

function partsOf(span: Span, range: Between, within: SpanAt | null): PartOfSpan[] {
  const of = { span, start: startOf(span, range.since) };
  const next = shorter(span);
  if (!next) return [{ of, within, range, whole: null }];
  const { whole, rest } = cut(next, range);
  return [
    { of, within, range, whole: whole && fewest(of, whole, next) },
    ...rest.flatMap((part) => partsOf(next, part, of)),
  ];
}

/** Some spans at one end of a longer one, or all of it less the others. */
function fewest({ span, start }: SpanAt, whole: Between, next: Exclude<Span, 'month'>): PartOfSpan['whole'] {
  const end = addSpans(span, start, 1);
  // nothing is kept of what has not begun
  const now = Date.now();
  const length = ({ since, until }: Between) => Math.min(until.getTime(), now) - Math.min(since.getTime(), now);
  const less =
    whole.until.getTime() === end.getTime()
      ? { since: start, until: whole.since }
      : whole.since.getTime() === start.getTime()
        ? { since: whole.until, until: end }
        : null;
  return less && length(less) + LONGER * MS[next] < length(whole)
    ? { span, since: start, until: end, less: { ...less, span: next } }
    : { ...whole, span: next, less: null };
}

/** Divides a range into whole months and what is around them. */
export function spansOf(range: TimeRange): Spanned {
  if (isEmpty(range)) return { months: null, parts: [] };
  const { whole, rest } = cut('month', range);
  return { months: whole, parts: rest.flatMap((part) => partsOf('month', part, null)) };
}

/** Some whole spans of one length. */
export interface WholeSpans<Of extends Length> extends Between {
  span: Of;
}

/**
 * A range as whole spans of the longest lengths that it has.
 * @param lengths longest first; the range begins and ends with spans of the last one
 */
export function wholeSpansOf<Of extends Length>(range: Between, lengths: readonly Of[]): WholeSpans<Of>[] {
  const [span, ...shorterOnes] = lengths;
  if (!span) throw new Error('The range is cut within a span of the shortest length.');
  const { whole, rest } = cut(span, range);
  return [...(whole ? [{ span, ...whole }] : []), ...rest.flatMap((part) => wholeSpansOf(part, shorterOnes))];
}
