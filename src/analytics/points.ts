import { addSpans } from '../activity/time-spans.ts';

/** The length of the spans of a series, in UTC. */
export type Step = 'hour' | 'day';

/** A value of a series. */
export interface Point {
  /** The start of the span. */
  timestamp: Date;
  value: number;
}

/** From the start of a span to the end of one. */
export interface WholeSpans {
  since: Date;
  until: Date;
}

/** One point for each span, oldest first: 0 where there is no value. @param values by the time of the start */
export function pointsOf(step: Step, { since, until }: WholeSpans, values: ReadonlyMap<number, number>): Point[] {
  const points: Point[] = [];
  for (let start = since; start < until; start = addSpans(step, start, 1))
    points.push({ timestamp: start, value: values.get(start.getTime()) ?? 0 });
  return points;
}
