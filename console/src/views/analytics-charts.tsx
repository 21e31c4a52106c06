import { useEffect } from 'react';
import type { CombinedError } from 'urql';
import { PercentilesDocument, SeriesDocument, type SeriesMetric, type SeriesStep } from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { type Line, Plot } from '../ground/plot';
import { Loading, Problem } from '../ground/problem';
import { count, formatted, Time, timeZone } from '../ground/time';
import { t } from '../texts';
import type { Range } from './span-choice';

/** Which numbers are shown, of what. */
export interface Shown extends Range {
  of: { orgId: string; workspaceId?: string; appId?: string };
  /** How much earlier the span is that they are compared with; `null` for none. */
  earlier: number | null;
  /** Rises when the numbers are to be read again. */
  turn: number;
}

type Points = readonly { timestamp: string; value: number }[];

const at = (time: number) => new Date(time).toISOString();

/** The variables of what is shown, and of what it is compared with. */
function askedOf({ of, step, from, to, earlier }: Shown) {
  const common = { ...of, step, tz: timeZone() };
  const before = earlier ?? 0;
  return {
    now: { ...common, from: at(from), to: at(to) },
    before: { ...common, from: at(from - before), to: at(to - before) },
  };
}

/** Reads again what a view shows, when it is time. */
export function useTurn(turn: number, again: () => void) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first turn has just been read
  useEffect(() => {
    if (turn > 0) again();
  }, [turn]);
}

const lineOf = (label: string, points: Points): Line => ({ label, values: points.map(({ value }) => value) });

/** The points of another span, beside those that are shown. */
const beside = (label: string, points: Points, former: Points | undefined): Line[] =>
  former && former.length > 0
    ? [{ label, values: points.map((_, index) => former.slice(-points.length)[index]?.value ?? 0) }]
    : [];

export function Metric({
  metric,
  shown,
  show = count,
}: {
  metric: SeriesMetric;
  shown: Shown;
  show?: (value: number) => string;
}) {
  const asked = askedOf(shown);
  const now = useAnswer(SeriesDocument, { ...asked.now, metric });
  const before = useAnswer(SeriesDocument, { ...asked.before, metric }, { isWaiting: shown.earlier === null });
  useTurn(shown.turn, now.again);
  const label = t.analytics.metrics[metric];
  const points = now.data?.series.points ?? [];
  const former = shown.earlier === null ? undefined : before.data?.series.points;
  return (
    <Chart
      label={label}
      name={metric.toLowerCase()}
      step={shown.step}
      times={points.map(({ timestamp }) => timestamp)}
      lines={[lineOf(label, points), ...beside(t.analytics.before, points, former)]}
      error={now.error ?? before.error}
      isLoading={now.isLoading}
      show={show}
    />
  );
}

/** How long half, 95 % and 99 % of the operations took at most. */
export function Percentiles({ shown }: { shown: Shown }) {
  const asked = askedOf(shown);
  const now = useAnswer(PercentilesDocument, asked.now);
  const before = useAnswer(PercentilesDocument, asked.before, { isWaiting: shown.earlier === null });
  useTurn(shown.turn, now.again);
  const points = now.data?.p50.points ?? [];
  const former = shown.earlier === null ? undefined : before.data;
  const { data } = now;
  return (
    <Chart
      label={t.analytics.latency}
      name="latency"
      step={shown.step}
      times={points.map(({ timestamp }) => timestamp)}
      lines={
        data
          ? [
              lineOf('p50', data.p50.points),
              lineOf('p95', data.p95.points),
              lineOf('p99', data.p99.points),
              ...beside(t.analytics.beforeOf('p95'), points, former?.p95.points),
            ]
          : []
      }
      error={now.error ?? before.error}
      isLoading={now.isLoading}
      show={count}
    />
  );
}

const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** The points as a file: a row for each time, a column for each line. */
function csvOf(times: readonly string[], lines: readonly Line[]): string {
  const head = ['time', ...lines.map(({ label }) => quoted(label))];
  const rows = times.map((time, index) => [time, ...lines.map(({ values }) => values[index] ?? 0)]);
  return [head, ...rows].map((row) => row.join(',')).join('\r\n');
}

interface ChartProps {
  label: string;
  /** Of the file. */
  name: string;
  step: SeriesStep;
  times: readonly string[];
  lines: readonly Line[];
  error: CombinedError | undefined;
  isLoading: boolean;
  show: (value: number) => string;
  /** One below that of the heading above it. */
  Heading?: 'h2' | 'h3';
}

/** A plot with what its lines are, the same numbers in a table, and as a file. */
export function Chart({ label, name, step, times, lines, error, isLoading, show, Heading = 'h2' }: ChartProps) {
  return (
    <section className="card" aria-label={label}>
      <header className="toolbar">
        <Heading className="grow">{label}</Heading>
        <a
          href={`data:text/csv;charset=utf-8,${encodeURIComponent(csvOf(times, lines))}`}
          download={`${name}.csv`}
          aria-label={t.analytics.csvOf(label)}
        >
          CSV
        </a>
      </header>
      <Problem error={error} />
      {isLoading && <Loading />}
      {lines.length > 1 && (
        <ul className="legend">
          {lines.map((line) => (
            <li key={line.label}>{line.label}</li>
          ))}
        </ul>
      )}
      {times.length > 0 && <Plot label={t.analytics.plot(label)} times={times} lines={lines} show={show} />}
      {times.length > 0 && (
        <details>
          <summary>{t.analytics.table}</summary>
          <table>
            <thead>
              <tr>
                <th scope="col">{t.when}</th>
                {lines.map((line) => (
                  <th scope="col" key={line.label}>
                    {line.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((time, index) => (
                <tr key={time}>
                  <th scope="row">
                    <At time={time} step={step} />
                  </th>
                  {lines.map((line) => (
                    <td key={line.label}>{show(line.values[index] ?? 0)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </section>
  );
}

function At({ time, step }: { time: string; step: SeriesStep }) {
  if (step === 'HOUR') return <Time at={time} />;
  return formatted(time, step === 'DAY' ? { dateStyle: 'medium' } : { year: 'numeric', month: 'long' });
}
