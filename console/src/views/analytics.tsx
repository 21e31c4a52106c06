import type { ReactNode } from 'react';
import { AppsDocument, NumbersDocument } from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { Figure } from '../ground/figure';
import { useFilters } from '../ground/filters';
import { usePages } from '../ground/pages';
import { atLeast } from '../ground/permissions';
import { usePlace } from '../ground/place';
import { Problem } from '../ground/problem';
import { bytes, count, timeZone } from '../ground/time';
import { t } from '../texts';
import { Metric, Percentiles } from './analytics-charts';
import { allSpans, keyIn, type Offer, rangeOf, SpanChoice, type SpanFilter, useTurns } from './span-choice';
import { TopResources } from './top-resources';

type Filter = SpanFilter | 'app' | 'compare';

const DAY = 86_400_000;

const offer: Offer = { usual: 'day', spans: allSpans };

/** How much earlier the other span is; that of `yes` is the one just before. */
const comparisons = { yes: null, week: 7 * DAY, weeks: 28 * DAY } as const;
type Comparison = keyof typeof comparisons;

/** What stands for the organization among the apps. */
const ALL = 'organization';
/** Numbers over time, of a workspace, one of its apps or its organization, beside those of another span. */
export function Analytics(): ReactNode {
  const { orgId, workspaceId, roles, may } = usePlace();
  const [search, change] = useFilters<Filter>();
  const comparison = keyIn(comparisons, search.compare);
  const { data, error, again } = useAnswer(NumbersDocument, { orgId, workspaceId });
  const apps = usePages(AppsDocument, { orgId, workspaceId }, (answer) => answer.apps);
  const set = (name: Filter, value: string) => change({ [name]: value });
  const { end, turn } = useTurns(again);
  const isOfAll = search.app === ALL && atLeast(roles.organization, 'admin');
  const appId = isOfAll ? undefined : search.app;
  const range = rangeOf(search, end, offer);
  const shown = range && {
    of: { orgId, ...(!isOfAll && { workspaceId }), ...(appId && { appId }) },
    ...range,
    earlier: comparison ? (comparisons[comparison] ?? range.to - range.from) : null,
    turn,
  };
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.analytics}</h1>
        <SpanChoice search={search} end={end} offer={offer} onChange={change} />
        <label>
          {t.analytics.of}{' '}
          <select value={search.app ?? ''} onChange={(event) => set('app', event.target.value)}>
            <option value="">{t.analytics.workspace}</option>
            {atLeast(roles.organization, 'admin') && <option value={ALL}>{t.analytics.organization}</option>}
            {apps.rows.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t.analytics.compare}{' '}
          <select value={comparison ?? ''} onChange={(event) => set('compare', event.target.value)}>
            <option value="">{t.analytics.nothing}</option>
            {(Object.keys(comparisons) as Comparison[]).map((name) => (
              <option key={name} value={name}>
                {t.analytics.comparisons[name]}
              </option>
            ))}
          </select>
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
      {!shown && <Problem message={t.analytics.wrongDates} />}
      {shown && (
        <>
          <Metric metric="REQUESTS" shown={shown} />
          <Metric metric="ERRORS" shown={shown} />
          <Percentiles shown={shown} />
          <Metric metric="EXECUTIONS" shown={shown} />
          <Metric metric="TOKENS" shown={shown} />
          {!appId && <Metric metric="STORAGE" shown={shown} show={bytes} />}
          {!appId && !isOfAll && may('activity:read') && <TopResources shown={shown} />}
        </>
      )}
    </>
  );
}
