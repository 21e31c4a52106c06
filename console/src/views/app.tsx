import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { AppDetailDocument, type AppDetailQuery, CreateReleaseDocument } from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { useNames } from '../ground/filters';
import { FormDialog } from '../ground/form';
import { usePlace } from '../ground/place';
import { Loading, Problem } from '../ground/problem';
import { Time } from '../ground/time';
import { wordOf } from '../ground/words';
import { t } from '../texts';
import { Executions } from './executions';

type Pipeline = AppDetailQuery['augmentations']['nodes'][number];

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
      <section aria-labelledby="executions">
        <h2 id="executions">{t.home.runs}</h2>
        <Executions appId={id} />
      </section>
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
                          {[wordOf(t.apps.steps, stepType), action, toolInstance?.name ?? toolSlug, logicalModelId]
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
