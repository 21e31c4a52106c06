import { type ReactNode, useState } from 'react';
import { AppsDocument, NumbersDocument } from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { useFilters } from '../ground/filters';
import { useAfterEvents } from '../ground/live';
import { dayAfter, dayOf, instantOf } from '../ground/local-time';
import { usePages } from '../ground/pages';
import { atLeast } from '../ground/permissions';
import { usePlace } from '../ground/place';
import { Problem } from '../ground/problem';
import { bytes, count, timeZone } from '../ground/time';
import { t } from '../texts';
import { Metric, Percentiles, type Shown } from './analytics-charts';
import { TopResources } from './top-resources';

type Filter = 'span' | 'from' | 'to' | 'app' | 'compare';

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
type Span = keyof typeof spans;
/** What stands among the spans for two days that the reader chooses. */
const DATES = 'dates';

/** How much earlier the other span is; that of `yes` is the one just before. */
const comparisons = { yes: null, week: 7 * DAY, weeks: 28 * DAY } as const;
type Comparison = keyof typeof comparisons;

/** What stands for the organization among the apps. */
const ALL = 'organization';
/** Numbers are read again at most so often while things happen. */
const REFRESH_MS = 5_000;

const keyIn = <Name extends string>(of: Readonly<Record<Name, unknown>>, name: string | undefined) =>
  (Object.keys(of) as Name[]).find((key) => key === name);

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
  const range = rangeOf(search, end);
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
        <SpanChoice search={search} end={end} onChange={change} />
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

type Search = Partial<Record<Filter, string>>;

/** Two days as the address has them, else the last week. The last one is shown, too. */
const daysIn = ({ from, to }: Search, end: number): { from: string; to: string } => {
  const today = dayOf(end - 1, timeZone());
  return { from: from ?? dayAfter(today, -6), to: to ?? today };
};

/** What is shown; `null` for days that are none, or the wrong way round, or more than ten years. */
function rangeOf(search: Search, end: number): Pick<Shown, 'step' | 'from' | 'to'> | null {
  if (search.span !== DATES) {
    const { step, length } = spans[keyIn(spans, search.span) ?? 'day'];
    return { step, from: end - length, to: end };
  }
  const days = daysIn(search, end);
  const [from, to] = [instantOf(days.from, timeZone()), instantOf(dayAfter(days.to, 1), timeZone())];
  if (from === null || to === null || to <= from || to - from > LONGEST) return null;
  const length = to - from;
  return { step: length <= 8 * DAY ? 'HOUR' : length <= 190 * DAY ? 'DAY' : 'MONTH', from, to };
}

function SpanChoice({ search, end, onChange }: { search: Search; end: number; onChange: (changes: Search) => void }) {
  const span = search.span === DATES ? DATES : (keyIn(spans, search.span) ?? 'day');
  const days = daysIn(search, end);
  // the days are in the address, so that whoever gets it sees the same
  const choose = (name: string) =>
    onChange(name === DATES ? { span: name, ...days } : { span: name, from: '', to: '' });
  return (
    <>
      <label>
        {t.analytics.span}{' '}
        <select value={span} onChange={(event) => choose(event.target.value)}>
          {([...(Object.keys(spans) as Span[]), DATES] as const).map((name) => (
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
function useTurns(again: () => void) {
  // to the hour: the same question while the view is open
  const now = () => Math.floor(Date.now() / HOUR) * HOUR + HOUR;
  const [state, setState] = useState(() => ({ end: now(), turn: 0 }));
  useAfterEvents(() => {
    setState(({ turn }) => ({ end: now(), turn: turn + 1 }));
    again();
  }, REFRESH_MS);
  return state;
}

const Figure = ({ label, value }: { label: string; value: string }) => (
  <div className="number">
    <dt>{label}</dt>
    <dd>{value}</dd>
  </div>
);
