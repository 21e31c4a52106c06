/** A part of time: from its start, which it includes, to its end, which it does not. `null`: without an end. */
export interface Range {
  since: Date | null;
  until: Date | null;
}

/** Lengths of time that records are summed by, in UTC. */
export const spans = ['hour', 'day', 'month'] as const;
export type Span = (typeof spans)[number];

/** A range as whole spans, and the rest. */
export interface Spanned {
  /** Disjoint; each consists of whole spans. */
  whole: readonly (Range & { span: Span })[];
  /** What is at most one of the finest spans long, at either end. */
  edges: readonly Range[];
  /** Everything between the edges; `null` if there is nothing. */
  inner: Range | null;
}

const HOUR_MS = 3_600_000;

/** The start of the span that contains a time. */
export function startOf(span: Span, time: Date): Date {
  if (span === 'month') return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth(), 1));
  const ms = span === 'hour' ? HOUR_MS : 24 * HOUR_MS;
  return new Date(Math.floor(time.getTime() / ms) * ms);
}

/** The start of a span some spans later. */
export function addSpans(span: Span, start: Date, count: number): Date {
  if (span === 'month') return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + count, 1));
  return new Date(start.getTime() + count * (span === 'hour' ? HOUR_MS : 24 * HOUR_MS));
}

function ceil(span: Span, time: Date): Date {
  const start = startOf(span, time);
  return start.getTime() === time.getTime() ? start : addSpans(span, start, 1);
}

const isEmpty = ({ since, until }: Range): boolean => since !== null && until !== null && since >= until;

/** The part of a range that consists of whole spans, and what is before and after it. */
function cut(span: Span, range: Range): { whole: Range | null; rest: Range[] } {
  const whole = {
    since: range.since && ceil(span, range.since),
    until: range.until && startOf(span, range.until),
  };
  if (isEmpty(whole)) return { whole: null, rest: [range] };
  const before = { since: range.since, until: whole.since };
  const after = { since: whole.until, until: range.until };
  return {
    whole,
    rest: [...(range.since ? [before] : []), ...(range.until ? [after] : [])].filter((r) => !isEmpty(r)),
  };
}

/** Divides a range into whole months, whole days around them, whole hours around these, and the edges. */
export function spansOf(range: Range, finest: Span = 'hour'): Spanned {
  if (isEmpty(range)) return { whole: [], edges: [], inner: null };
  const { whole: inner, rest: edges } = cut(finest, range);
  const whole: (Range & { span: Span })[] = [];
  let open = inner ? [inner] : [];
  for (const span of spans.toReversed()) {
    const rest: Range[] = [];
    for (const part of open) {
      const { whole: found, rest: more } = cut(span, part);
      if (found) whole.push({ ...found, span });
      rest.push(...more);
    }
    open = rest;
  }
  return { whole, edges, inner };
}
