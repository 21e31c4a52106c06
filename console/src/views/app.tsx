import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import {
  AppDetailDocument,
  type AppDetailQuery,
  CreateReleaseDocument,
  ExecutionsDocument,
  type ExecutionsQuery,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { useFilters, useNames } from '../ground/filters';
import { FormDialog } from '../ground/form';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, Loading, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { count, Time } from '../ground/time';
import { t } from '../texts';

const Run = lazy(() => import('./run').then(({ Run: one }) => ({ default: one })));

type Pipeline = AppDetailQuery['augmentations']['nodes'][number];
type Execution = ExecutionsQuery['executions']['nodes'][number];

const statuses = ['running', 'completed', 'failed'] as const;

/** An app: its pipelines as pictures, its executions, its releases. */
export function AppView(): ReactNode {
  const { orgId, workspaceId, may } = usePlace();
  const { app: id = '' } = useNames();
  const { data, error } = useAnswer(AppDetailDocument, { orgId, workspaceId, id });
  const [isReleasing, setReleasing] = useState(false);
  if (error && !data) return <Problem error={error} />;
  if (!data) return <Loading />;
  const { app, augmentations, releases } = data;
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">
          <Link to="/o/$org/w/$ws/apps" params={{ org: orgId, ws: workspaceId }}>
            {t.sections.apps}
          </Link>{' '}
          / {app.name}
        </h1>
        {may('release:create') && (
          <button type="button" onClick={() => setReleasing(true)}>
            {t.apps.release}
          </button>
        )}
      </header>
      {app.description && <p>{app.description}</p>}
      <section aria-labelledby="pipelines">
        <h2 id="pipelines">{t.home.pipelines}</h2>
        {augmentations.nodes.length === 0 && <p className="quiet">{t.apps.noPipelines}</p>}
        {augmentations.nodes.map((pipeline) => (
          <Picture key={pipeline.id} pipeline={pipeline} />
        ))}
      </section>
      <Executions appId={id} />
      <section aria-labelledby="releases">
        <h2 id="releases">{t.apps.releases}</h2>
        {releases.nodes.length === 0 && <p className="quiet">{t.environments.noReleases}</p>}
        <ul className="plain">
          {releases.nodes.map(({ id: releaseId, version, notes, createdAt, createdByUser }) => (
            <li key={releaseId}>
              <strong>{version}</strong> <Time at={createdAt} /> {createdByUser?.username}{' '}
              {notes && <small>{notes}</small>}
            </li>
          ))}
        </ul>
      </section>
      {isReleasing && <NewRelease appId={id} onClose={() => setReleasing(false)} />}
    </>
  );
}

/** The stages from left to right, the steps of a stage below each other; those that run together have a bracket. */
function Picture({ pipeline: { name, description, status, stages } }: { pipeline: Pipeline }) {
  return (
    <article className="card pipeline">
      <h3>
        {name} <span className={status === 'active' ? 'tag ok' : 'tag'}>{t.apps.pipelineStatus[status]}</span>
      </h3>
      {description && <p className="quiet">{description}</p>}
      {stages.length === 0 && <p className="quiet">{t.apps.noStages}</p>}
      {stages.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached by keyboard
        <section className="wide-table" tabIndex={0} aria-label={t.apps.picture(name)}>
          <ol className="stages">
            {stages.map((stage) => (
              <li key={stage.stageId}>
                <h4>{stage.name}</h4>
                <p className="quiet">{t.apps.mode[stage.executionMode]}</p>
                <ol className={`steps ${stage.executionMode}`}>
                  {stage.steps.map(
                    ({ stepId, name: step, stepType, action, toolSlug, toolInstance, logicalModelId }) => (
                      <li key={stepId}>
                        <strong>{step}</strong>
                        <small className="quiet">
                          {[stepType, action, toolInstance?.name ?? toolSlug, logicalModelId]
                            .filter(Boolean)
                            .join(' · ')}
                        </small>
                      </li>
                    ),
                  )}
                </ol>
              </li>
            ))}
          </ol>
        </section>
      )}
    </article>
  );
}

function Executions({ appId }: { appId: string }) {
  const { orgId, workspaceId } = usePlace();
  const [{ status: asked, run }, change] = useFilters<'status' | 'run'>();
  const status = statuses.find((word) => word === asked);
  const variables = { orgId, workspaceId, appId, ...(status && { status }) };
  const list = usePages(ExecutionsDocument, variables, ({ executions }) => executions);
  return (
    <section aria-labelledby="executions">
      <header className="toolbar">
        <h2 id="executions" className="grow">
          {t.home.runs}
        </h2>
        <select aria-label={t.status} value={status ?? ''} onChange={(event) => change({ status: event.target.value })}>
          <option value="">{t.all}</option>
          {statuses.map((word) => (
            <option key={word} value={word}>
              {t.apps.status[word]}
            </option>
          ))}
        </select>
      </header>
      <Rows<Execution>
        label={t.home.runs}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.apps.noRuns} />}
        columns={[
          {
            label: t.when,
            cell: ({ startedAt, executionId }) => (
              <Link
                to="/o/$org/w/$ws/apps/$app"
                params={{ org: orgId, ws: workspaceId, app: appId }}
                search={{ ...(status && { status }), run: executionId }}
              >
                <Time at={startedAt} /> <span className="unseen">{t.runs.one(executionId)}</span>
              </Link>
            ),
          },
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
    </section>
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

function NewRelease({ appId, onClose }: { appId: string; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const create = useChange(CreateReleaseDocument);
  return (
    <FormDialog
      title={t.apps.release}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'version', label: t.apps.version, hint: t.apps.versionHint },
        { name: 'notes', label: t.apps.notes, kind: 'lines' },
      ]}
      onSave={({ version, notes }) =>
        create({ orgId, workspaceId, appId, input: { ...(version && { version }), ...(notes && { notes }) } })
      }
    />
  );
}
