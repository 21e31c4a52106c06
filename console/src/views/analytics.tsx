import { type ReactNode, useMemo } from 'react';
import { AppsDocument, NumbersDocument, SeriesDocument, type SeriesMetric } from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { useFilters } from '../ground/filters';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { type Line, Plot } from '../ground/plot';
import { Loading, Problem } from '../ground/problem';
import { bytes, count, formatted, Time, timeZone } from '../ground/time';
import { t } from '../texts';

type Filter = 'span' | 'app' | 'compare';

const HOUR = 3_600_000;
const spans = {
  day: { step: 'HOUR', length: 24 * HOUR },
  week: { step: 'HOUR', length: 7 * 24 * HOUR },
  month: { step: 'DAY', length: 30 * 24 * HOUR },
  quarter: { step: 'DAY', length: 90 * 24 * HOUR },
} as const;
type Span = keyof typeof spans;
const metrics = ['REQUESTS', 'ERRORS', 'LATENCY', 'EXECUTIONS', 'TOKENS'] as const satisfies SeriesMetric[];

/** Numbers over time, of a workspace or one of its apps, beside those of the span before. */
export function Analytics(): ReactNode {
  const { orgId, workspaceId } = usePlace();
  const [search, change] = useFilters<Filter>();
  const span = (Object.keys(spans) as Span[]).find((name) => name === search.span) ?? 'day';
  const { data, error } = useAnswer(NumbersDocument, { orgId, workspaceId });
  const apps = usePages(AppsDocument, { orgId, workspaceId }, (answer) => answer.apps);
  const set = (name: Filter, value: string) => change({ [name]: value });
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.analytics}</h1>
        <label>
          {t.analytics.span}{' '}
          <select value={span} onChange={(event) => set('span', event.target.value)}>
            {(Object.keys(spans) as Span[]).map((name) => (
              <option key={name} value={name}>
                {t.analytics.spans[name]}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t.analytics.of}{' '}
          <select value={search.app ?? ''} onChange={(event) => set('app', event.target.value)}>
            <option value="">{t.analytics.workspace}</option>
            {apps.rows.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={search.compare === 'yes'}
            onChange={(event) => set('compare', event.target.checked ? 'yes' : '')}
          />{' '}
          {t.analytics.compare}
        </label>
      </header>
      <Problem error={error} />
      {data && (
        <dl className="numbers">
          <Figure label={t.home.runs} value={count(data.workspaceAnalytics.executions.total)} />
          <Figure label={t.home.failedRuns} value={count(data.workspaceAnalytics.executions.failed)} />
          <Figure label={t.analytics.storage} value={bytes(data.workspaceAnalytics.storageBytes)} />
          <Figure label={t.sections.artifacts} value={count(data.workspaceAnalytics.resources.artifacts)} />
        </dl>
      )}
      <p className="quiet">{t.analytics.zone(timeZone())}</p>
      {metrics.map((metric) => (
        <Metric key={metric} metric={metric} span={span} appId={search.app} isCompared={search.compare === 'yes'} />
      ))}
    </>
  );
}

const Figure = ({ label, value }: { label: string; value: string }) => (
  <div className="number">
    <dt>{label}</dt>
    <dd>{value}</dd>
  </div>
);

function Metric({
  metric,
  span,
  appId,
  isCompared,
}: {
  metric: SeriesMetric;
  span: Span;
  appId: string | undefined;
  isCompared: boolean;
}) {
  const { orgId, workspaceId } = usePlace();
  const { step, length } = spans[span];
  // to the minute: the same question while the view is open
  const end = useMemo(() => Math.floor(Date.now() / 60_000) * 60_000 + 60_000, []);
  const at = (time: number) => new Date(time).toISOString();
  const common = { orgId, workspaceId, metric, step, tz: timeZone(), ...(appId && { appId }) };
  const now = useAnswer(SeriesDocument, { ...common, from: at(end - length), to: at(end) });
  const before = useAnswer(
    SeriesDocument,
    { ...common, from: at(end - 2 * length), to: at(end - length) },
    { isWaiting: !isCompared },
  );
  const label = t.analytics.metrics[metric];
  const points = now.data?.series.points ?? [];
  const times = points.map(({ timestamp }) => timestamp);
  const former = before.data?.series.points.slice(-points.length) ?? [];
  const lines: Line[] = [
    { label, values: points.map(({ value }) => value) },
    ...(isCompared && former.length > 0
      ? [{ label: t.analytics.before, values: points.map((_, index) => former[index]?.value ?? 0) }]
      : []),
  ];
  const csv = () => ['time,value', ...points.map(({ timestamp, value }) => `${timestamp},${value}`)].join('\r\n');
  return (
    <section className="card" aria-label={label}>
      <header className="toolbar">
        <h2 className="grow">{label}</h2>
        <a
          href={`data:text/csv;charset=utf-8,${encodeURIComponent(csv())}`}
          download={`${metric.toLowerCase()}.csv`}
          aria-label={t.analytics.csvOf(label)}
        >
          CSV
        </a>
      </header>
      <Problem error={now.error ?? before.error} />
      {now.isLoading && <Loading />}
      {points.length > 0 && <Plot label={t.analytics.plot(label)} times={times} lines={lines} />}
      {points.length > 0 && (
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
                  <th scope="row">{step === 'DAY' ? formatted(time, { dateStyle: 'medium' }) : <Time at={time} />}</th>
                  {lines.map((line) => (
                    <td key={line.label}>{count(line.values[index] ?? 0)}</td>
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
