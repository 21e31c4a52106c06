import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';
import { ExecutionsDocument, type ExecutionsQuery } from '../generated/documents';
import { useFilters } from '../ground/filters';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty } from '../ground/problem';
import { Rows } from '../ground/rows';
import { count, Time, timeZone } from '../ground/time';
import { TimeFields, timeIn } from '../ground/time-filters';
import { t } from '../texts';

const Run = lazy(() => import('./run').then(({ Run: one }) => ({ default: one })));

type Execution = ExecutionsQuery['executions']['nodes'][number];
type Filter = 'status' | 'run' | 'from' | 'to';
type Search = Partial<Record<Filter, string>>;

const statuses = ['running', 'completed', 'failed'] as const;

/** The runs of all apps of a workspace. */
export function Runs(): ReactNode {
  return (
    <>
      <h1>{t.sections.runs}</h1>
      <Executions />
    </>
  );
}

/** The runs of an app, or of all apps. The filters are in the address, and so is the run that is open. */
export function Executions({ appId }: { appId?: string }) {
  const { orgId, workspaceId } = usePlace();
  const [search, change] = useFilters<Filter>();
  const { status: asked, run, from, to } = search;
  const status = statuses.find((word) => word === asked);
  const [startedFrom, startedBefore] = [timeIn(from), timeIn(to)];
  const variables = {
    orgId,
    workspaceId,
    ...(appId && { appId }),
    ...(status && { status }),
    ...(startedFrom && { startedFrom }),
    ...(startedBefore && { startedBefore }),
  };
  const list = usePages(ExecutionsDocument, variables, ({ executions }) => executions);
  const ofApp = {
    label: t.apps.one,
    isExtra: true,
    cell: ({ app }: Execution) => (
      <Link to="/o/$org/w/$ws/apps/$app" params={{ org: orgId, ws: workspaceId, app: app.id }}>
        {app.name}
      </Link>
    ),
  };
  const isFiltered = Boolean(status || startedFrom || startedBefore);
  return (
    <>
      <form className="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          {t.status}
          <select value={status ?? ''} onChange={(event) => change({ status: event.target.value })}>
            <option value="">{t.all}</option>
            {statuses.map((word) => (
              <option key={word} value={word}>
                {t.apps.status[word]}
              </option>
            ))}
          </select>
        </label>
        <TimeFields filter={{ from, to }} onChange={change} />
      </form>
      <p className="quiet">{t.analytics.zone(timeZone())}</p>
      <Rows<Execution>
        label={t.home.runs}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={isFiltered ? t.apps.noRuns : t.apps.neverRan} />}
        columns={[
          {
            label: t.when,
            cell: ({ startedAt, executionId }) => (
              <RunLink appId={appId} search={{ ...search, run: executionId }}>
                <Time at={startedAt} /> <span className="unseen">{t.runs.one(executionId)}</span>
              </RunLink>
            ),
          },
          ...(appId ? [] : [ofApp]),
          { label: t.apps.pipeline, cell: ({ augmentation }) => augmentation?.name },
          { label: t.status, cell: (execution) => <Status execution={execution} /> },
          { label: t.apps.progress, cell: (execution) => <Progress execution={execution} /> },
          { label: t.apps.tokens, isExtra: true, cell: ({ tokenUsage }) => count(tokenUsage.total) },
        ]}
      />
      {run && (
        <Suspense>
          <Run executionId={run} onClose={() => change({ run: '' })} />
        </Suspense>
      )}
    </>
  );
}

/** Opens a run where its list is. */
function RunLink({ appId, search, children }: { appId: string | undefined; search: Search; children: ReactNode }) {
  const { orgId: org, workspaceId: ws } = usePlace();
  return appId ? (
    <Link to="/o/$org/w/$ws/apps/$app" params={{ org, ws, app: appId }} search={search}>
      {children}
    </Link>
  ) : (
    <Link to="/o/$org/w/$ws/runs" params={{ org, ws }} search={search}>
      {children}
    </Link>
  );
}

function Status({ execution: { status, error, isTimedOut } }: { execution: Execution }) {
  const kind = { completed: 'ok', failed: 'bad', running: 'warn' }[status];
  return (
    <>
      <span className={`tag ${kind}`}>{isTimedOut ? t.apps.timedOut : t.apps.status[status]}</span>
      {error && (
        <small className="clip" title={error}>
          {error}
        </small>
      )}
    </>
  );
}

/** The stages that are done, and how long they took together. */
function Progress({
  execution: { stagesCompleted, totalStages, startedAt, endedAt, status },
}: {
  execution: Execution;
}) {
  const seconds = endedAt ? (Date.parse(endedAt) - Date.parse(startedAt)) / 1_000 : null;
  const label = t.apps.stagesDone(stagesCompleted, totalStages);
  return (
    <span className="progress">
      <meter className={status} min={0} max={Math.max(1, totalStages)} value={stagesCompleted} aria-label={label} />
      <small>
        {stagesCompleted}/{totalStages} {seconds !== null && t.seconds(seconds)}
      </small>
    </span>
  );
}
