import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import {
  HomeDocument,
  type HomeQuery,
  HomeSecretsDocument,
  PresentDocument,
  RecentActivityDocument,
  TodayDocument,
  UpdateWorkspaceDocument,
  WorkspaceNowDocument,
} from '../generated/documents';
import { useAnswer, useChange, useStream } from '../ground/answers';
import { askPastCache } from '../ground/client';
import { FormDialog } from '../ground/form';
import { useAfterEvents } from '../ground/live';
import { usePlace } from '../ground/place';
import { Loading, Problem } from '../ground/problem';
import { Sparkline } from '../ground/sparkline';
import { count, Time, timeZone } from '../ground/time';
import { t } from '../texts';
import { actorOf, didOf, isBad, Outcome } from './activity-row';

const SICK = new Set(['error', 'expired', 'needs_reauth', 'revoked']);

/** What is going on in a workspace, and what needs somebody. */
export function Home(): ReactNode {
  const { workspace, orgId, workspaceId, may } = usePlace();
  const [isEditing, setEditing] = useState(false);
  const { data, error } = useAnswer(HomeDocument, { orgId, workspaceId });
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{workspace.name}</h1>
        {may('workspace:update') && (
          <button type="button" onClick={() => setEditing(true)}>
            {t.home.edit}
          </button>
        )}
      </header>
      {workspace.description && <p>{workspace.description}</p>}
      <Present />
      <Problem error={error} />
      {!data && !error && <Loading />}
      {data && <Numbers data={data} />}
      {may('analytics:read') && <Today />}
      <div className="columns">
        {data && <Needs data={data} />}
        <Recent />
      </div>
      {isEditing && <EditWorkspace onClose={() => setEditing(false)} />}
    </>
  );
}

function Present() {
  const { orgId, workspaceId, me } = usePlace();
  const data = useStream(PresentDocument, { orgId, workspaceId });
  const users = data?.presence ?? [];
  return (
    <section aria-label={t.home.present} className="present">
      <span className="quiet">{t.home.present}</span>
      <ul>
        {users.map(({ userId, username }) => (
          <li key={userId} className="tag">
            {userId === me.id ? t.home.you(username) : username}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Numbers({ data: { resourceCounts, executionMetrics } }: { data: HomeQuery }) {
  const { orgId: org, workspaceId: ws, may } = usePlace();
  const params = { org, ws };
  const { total, failed } = executionMetrics;
  return (
    <dl className="numbers">
      <Figure label={t.sections.apps} value={resourceCounts.apps}>
        <Link to="/o/$org/w/$ws/apps" params={params} aria-label={t.sections.apps} />
      </Figure>
      {may('secret:read') && (
        <Figure label={t.sections.secrets} value={resourceCounts.secrets}>
          <Link to="/o/$org/w/$ws/secrets" params={params} aria-label={t.sections.secrets} />
        </Figure>
      )}
      <Figure label={t.sections.artifacts} value={resourceCounts.artifacts}>
        <Link to="/o/$org/w/$ws/artifacts" params={params} aria-label={t.sections.artifacts} />
      </Figure>
      <Figure label={t.home.pipelines} value={resourceCounts.augmentations} />
      <Figure label={t.home.runs} value={total}>
        <Link to="/o/$org/w/$ws/runs" params={params} aria-label={t.home.runs} />
      </Figure>
      <Figure label={t.home.failedRuns} value={failed} isBad={failed > 0}>
        <Link to="/o/$org/w/$ws/runs" params={params} search={{ status: 'failed' }} aria-label={t.home.failedRuns} />
      </Figure>
    </dl>
  );
}

/** Numbers are read again at most so often while things happen. */
const REFRESH_MS = 5_000;

/** The last 24 hours, as numbers with small plots. */
function Today() {
  const { orgId, workspaceId } = usePlace();
  const { data, error, again } = useAnswer(TodayDocument, { orgId, workspaceId, tz: timeZone() });
  useAfterEvents(again, REFRESH_MS);
  if (!data) return <Problem error={error} />;
  const names = { requests: 'REQUESTS', errors: 'ERRORS', executions: 'EXECUTIONS' } as const;
  return (
    <dl className="numbers">
      {(['requests', 'errors', 'executions'] as const).map((name) => {
        const values = data[name].points.map(({ value }) => value);
        const sum = values.reduce((all, value) => all + value, 0);
        return (
          <Figure
            key={name}
            label={t.home.today(t.analytics.metrics[names[name]])}
            value={sum}
            isBad={name === 'errors' && sum > 0}
          >
            <Sparkline values={values} />
            <Link
              to="/o/$org/w/$ws/analytics"
              params={{ org: orgId, ws: workspaceId }}
              aria-label={t.home.today(t.analytics.metrics[names[name]])}
            />
          </Figure>
        );
      })}
    </dl>
  );
}

function Figure({
  label,
  value,
  isBad = false,
  children,
}: {
  label: string;
  value: number;
  isBad?: boolean;
  children?: ReactNode;
}) {
  return (
    <div className={isBad ? 'number bad' : 'number'}>
      <dt>{label}</dt>
      <dd>
        {count(value)}
        {children}
      </dd>
    </div>
  );
}

function Needs({ data }: { data: HomeQuery }) {
  const { orgId, workspaceId, may } = usePlace();
  const { data: kept } = useAnswer(HomeSecretsDocument, { orgId, workspaceId }, { isWaiting: !may('secret:read') });
  const params = { org: orgId, ws: workspaceId };
  const secrets = kept?.secrets.nodes.filter(({ isExpired, needsRotation }) => isExpired || needsRotation) ?? [];
  const connections = data.connections.nodes.filter(({ status }) => SICK.has(status));
  const runs = data.executions.nodes;
  const isQuiet = secrets.length + connections.length + runs.length === 0;
  return (
    <section className="card" aria-labelledby="needs">
      <h2 id="needs">{t.home.needs}</h2>
      {isQuiet && <p className="quiet">{t.home.allGood}</p>}
      <ul className="plain">
        {secrets.map(({ id, name, isExpired, environment }) => (
          <li key={id}>
            <Link to="/o/$org/w/$ws/secrets" params={params} search={{ secret: id }}>
              {name}
              {environment ? ` · ${environment.name}` : ''}
            </Link>{' '}
            <span className={isExpired ? 'tag bad' : 'tag warn'}>
              {isExpired ? t.secrets.expired : t.secrets.needsRotation}
            </span>
          </li>
        ))}
        {connections.map(({ id, status, toolInstance, tool, lastError }) => (
          <li key={id}>
            <Link to="/o/$org/w/$ws/tools" params={params}>
              {toolInstance?.name ?? tool?.name ?? id}
            </Link>{' '}
            <span className="tag bad">{t.tools.status[status]}</span> {lastError && <small>{lastError}</small>}
          </li>
        ))}
        {runs.map(({ id, executionId, app, augmentation, error, startedAt }) => (
          <li key={id}>
            <Link
              to="/o/$org/w/$ws/apps/$app"
              params={{ ...params, app: app.id }}
              search={{ status: 'failed', run: executionId }}
            >
              {augmentation?.name ?? app.name}
            </Link>{' '}
            <span className="tag bad">{t.apps.status.failed}</span> <Time at={startedAt} />
            {error && <small className="clip">{error}</small>}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What is older is not looked for: where little changes, it would be behind very many reads. */
const RECENT_MS = 7 * 86_400_000;

function Recent() {
  const { orgId, workspaceId } = usePlace();
  const [startTime] = useState(() => new Date(Date.now() - RECENT_MS).toISOString());
  const { data, error, again } = useAnswer(RecentActivityDocument, { orgId, workspaceId, startTime });
  useAfterEvents(again, REFRESH_MS);
  const records = data?.workspaceActivity.nodes;
  return (
    <section className="card" aria-labelledby="recent">
      <h2 id="recent">{t.home.recent}</h2>
      <Problem error={error} />
      {records?.length === 0 && <p className="quiet">{t.home.nothingYet}</p>}
      <ul className="plain feed">
        {records?.map((record) => (
          <li key={record.id}>
            <span className="grow">
              <strong>{actorOf(record)}</strong> {didOf(record)} {isBad(record) && <Outcome record={record} />}
            </span>
            <Time at={record.timestamp} />
          </li>
        ))}
      </ul>
      <Link to="/o/$org/w/$ws/activity" params={{ org: orgId, ws: workspaceId }}>
        {t.home.allActivity}
      </Link>
    </section>
  );
}

function EditWorkspace({ onClose }: { onClose: () => void }) {
  const { orgId, workspaceId: id, workspace } = usePlace();
  const update = useChange(UpdateWorkspaceDocument);
  // what the reader saw when they began: whoever saves in between is not overwritten
  const [version, setVersion] = useState(workspace.resourceVersion);
  return (
    <FormDialog
      title={t.home.edit}
      action={t.save}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true, value: workspace.name },
        { name: 'description', label: t.description, kind: 'lines', value: workspace.description ?? '' },
      ]}
      onSave={({ name = '', description = '' }) =>
        update({ orgId, id, expectedVersion: version, input: { name, description: description || null } })
      }
      conflictOf={async () => {
        const { data } = await askPastCache(WorkspaceNowDocument, { orgId, id });
        if (!data) return null;
        setVersion(data.workspace.resourceVersion);
        return { name: data.workspace.name, description: data.workspace.description ?? '' };
      }}
    />
  );
}
