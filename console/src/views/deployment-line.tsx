import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import type { DeploymentsQuery } from '../generated/documents';
import type { Pages } from '../ground/pages';
import { formatted, Time } from '../ground/time';
import { t } from '../texts';

type Deployment = DeploymentsQuery['deployments']['nodes'][number];

/** What tells points apart beside their colours. */
const signs = { deploy: '●', promote: '▲', rollback: '↩', undeploy: '×' };

/** What a deployment did to the releases of its app. */
export const releasesOf = ({ action, release, previousRelease }: Deployment): string => {
  const now = release?.version ?? '?';
  return previousRelease && action !== 'undeploy' ? `${previousRelease.version} → ${now}` : now;
};

const sentenceOf = (deployment: Deployment): string => {
  const { action, app, deployedAt, deployedByUser } = deployment;
  const parts = [formatted(deployedAt), app?.name, t.environments.actions[action], releasesOf(deployment)];
  return [...parts, deployedByUser?.username].filter(Boolean).join(', ');
};

/** The day on which a deployment was made. */
const dayOf = ({ deployedAt }: Deployment): string => formatted(deployedAt, { month: 'short', day: 'numeric' });

/**
 * The history of an environment as a line: a point for each deployment that was read, the newest on the right. The
 * points are one field of which one is chosen, so the arrow keys walk along the line.
 */
export function DeploymentLine({ list }: { list: Pages<Deployment> & { more: () => void } }): ReactNode {
  const name = useId();
  const line = useRef<HTMLDivElement>(null);
  const [chosenId, setChosen] = useState('');
  const { rows, hasMore, isLoading, more } = list;
  const points = [...rows].reverse();
  const chosen = rows.find(({ id }) => id === chosenId) ?? rows[0];
  const newest = rows[0]?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the line begins at its newest point, and goes to a new one
  useEffect(() => {
    if (line.current) line.current.scrollLeft = line.current.scrollWidth;
  }, [newest]);
  if (!chosen) return null;
  return (
    <div className="card timeline">
      {hasMore && (
        <button type="button" className="small" disabled={isLoading} onClick={more}>
          {t.environments.older}
        </button>
      )}
      <fieldset>
        <legend>{t.environments.line}</legend>
        <div ref={line} className="points">
          {points.map((deployment, at) => {
            const before = points[at - 1];
            const day = dayOf(deployment);
            return (
              <label key={deployment.id} className={deployment.action} title={sentenceOf(deployment)}>
                <input
                  type="radio"
                  name={name}
                  checked={deployment.id === chosen.id}
                  onChange={() => setChosen(deployment.id)}
                  aria-label={sentenceOf(deployment)}
                />
                <span className="point" aria-hidden="true">
                  {signs[deployment.action]}
                </span>
                <small aria-hidden="true">{before && dayOf(before) === day ? '' : day}</small>
              </label>
            );
          })}
        </div>
      </fieldset>
      <Facts deployment={chosen} />
    </div>
  );
}

function Facts({ deployment }: { deployment: Deployment }) {
  const { action, app, deployedAt, deployedByUser } = deployment;
  const facts: [string, ReactNode][] = [
    [t.when, <Time key="when" at={deployedAt} />],
    [t.apps.one, app?.name ?? t.none],
    [t.environments.action, t.environments.actions[action]],
    [t.environments.release, releasesOf(deployment)],
    [t.who, deployedByUser?.username ?? t.none],
  ];
  return (
    <dl className="facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
