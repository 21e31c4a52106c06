import { useEffect, useState } from 'react';
import {
  type SeriesMetric,
  type TopMetric,
  TopResourcesDocument,
  type TopResourcesQuery,
} from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { Loading, Problem } from '../ground/problem';
import { count } from '../ground/time';
import { kindOf } from '../ground/words';
import { t } from '../texts';
import type { Shown } from './analytics-charts';

const metrics = { requests: 'REQUESTS', errors: 'ERRORS', executions: 'EXECUTIONS' } as const satisfies Record<
  TopMetric,
  SeriesMetric
>;
const names = Object.keys(metrics) as TopMetric[];

/** The name of a resource, if it is still there. */
function nameOf({ resource, resourceId }: TopResourcesQuery['topResources'][number]): string {
  const { name, username }: { id?: string; name?: string; username?: string } = resource ?? {};
  return name ?? username ?? resourceId;
}

/** What of the workspace is used most in what is shown. */
export function TopResources({ shown: { of, from, to, turn } }: { shown: Shown }) {
  const [metric, setMetric] = useState<TopMetric>('requests');
  const { orgId, workspaceId = '' } = of;
  const range = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  const { data, error, isLoading, again } = useAnswer(TopResourcesDocument, { orgId, workspaceId, metric, ...range });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first turn has just been read
  useEffect(() => {
    if (turn > 0) again();
  }, [turn]);
  const rows = data?.topResources;
  return (
    <section className="card" aria-label={t.analytics.top}>
      <header className="toolbar">
        <h2 className="grow">{t.analytics.top}</h2>
        <label>
          {t.analytics.topBy}{' '}
          <select
            value={metric}
            onChange={(event) => setMetric(names.find((name) => name === event.target.value) ?? 'requests')}
          >
            {names.map((name) => (
              <option key={name} value={name}>
                {t.analytics.metrics[metrics[name]]}
              </option>
            ))}
          </select>
        </label>
      </header>
      <p className="quiet">{t.analytics.topHint}</p>
      <Problem error={error} />
      {isLoading && <Loading />}
      {rows?.length === 0 && <p className="quiet">{t.analytics.topNone}</p>}
      {rows && rows.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">{t.name}</th>
              <th scope="col">{t.analytics.kind}</th>
              <th scope="col">{t.analytics.metrics[metrics[metric]]}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.resourceType} ${row.resourceId}`}>
                <th scope="row">{nameOf(row)}</th>
                <td>{kindOf(row.resourceType)}</td>
                <td>{count(row.uses)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
