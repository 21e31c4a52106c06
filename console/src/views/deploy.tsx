import { useState } from 'react';
import type { CombinedError } from 'urql';
import {
  DeployReleaseDocument,
  PromoteReleaseDocument,
  ReleasesDocument,
  UndeployAppDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { ConfirmDialog, Dialog } from '../ground/dialog';
import { usePlace } from '../ground/place';
import { Empty, Loading, Problem } from '../ground/problem';
import { Time } from '../ground/time';
import { t } from '../texts';
import type { Environment } from './environments';

/** Changes what runs of an app in an environment: a release, that of another environment, the one before, or none. */
export function DeployDialog({
  environment,
  environments,
  appId,
  name,
  onClose,
}: {
  environment: Environment;
  environments: readonly Environment[];
  appId: string;
  name: string;
  onClose: () => void;
}) {
  const { orgId, workspaceId, may } = usePlace();
  const { data, error } = useAnswer(ReleasesDocument, { orgId, workspaceId, appId });
  const deploy = useChange(DeployReleaseDocument);
  const promote = useChange(PromoteReleaseDocument);
  const undeploy = useChange(UndeployAppDocument);
  const [refusal, setRefusal] = useState<CombinedError>();
  const [isBusy, setBusy] = useState(false);
  const [isUndeploying, setUndeploying] = useState(false);
  const environmentId = environment.id;
  const where = { orgId, workspaceId, environmentId };
  const current = environment.deployed.nodes.find((deployment) => deployment.appId === appId);
  const previous = current?.previousRelease;
  const others = environments.flatMap((other) => {
    const there = other.deployed.nodes.find((deployment) => deployment.appId === appId);
    return there && other.id !== environmentId && there.release?.id !== current?.release?.id ? [{ other, there }] : [];
  });
  const run = async (change: Promise<{ error?: CombinedError | undefined }>) => {
    setBusy(true);
    const { error: refused } = await change;
    setBusy(false);
    setRefusal(refused);
    if (!refused) onClose();
  };
  if (isUndeploying)
    return (
      <ConfirmDialog
        title={t.environments.undeployOne(name, environment.name)}
        name={name}
        action={t.environments.undeploy}
        onClose={onClose}
        onConfirm={() => undeploy({ ...where, appId })}
      >
        <p>{t.environments.undeployHint}</p>
      </ConfirmDialog>
    );
  return (
    <Dialog title={t.environments.deployTo(name, environment.name)} onClose={onClose} isWide>
      <Problem error={refusal ?? error} />
      <p>{t.environments.now(current?.release?.version ?? t.environments.nothing)}</p>
      {(previous || others.length > 0) && (
        <div className="choices">
          {previous && (
            <button
              type="button"
              disabled={isBusy}
              onClick={() => void run(deploy({ ...where, input: { appId, releaseId: previous.id } }))}
            >
              {t.environments.rollBack(previous.version)}
            </button>
          )}
          {others.map(({ other, there }) => (
            <button
              key={other.id}
              type="button"
              disabled={isBusy}
              onClick={() => void run(promote({ ...where, input: { appId, fromEnvironmentId: other.id } }))}
            >
              {t.environments.promote(there.release?.version ?? '', other.name)}
            </button>
          ))}
        </div>
      )}
      {!data && !error && <Loading />}
      {data?.releases.nodes.length === 0 && <Empty title={t.environments.noReleases} />}
      <ul className="plain releases">
        {data?.releases.nodes.map(({ id, version, notes, createdAt }) => (
          <li key={id}>
            <span>
              <strong>{version}</strong> <Time at={createdAt} /> {notes && <small className="clip">{notes}</small>}
            </span>
            {id === current?.release?.id ? (
              <span className="tag ok">{t.environments.running}</span>
            ) : (
              <button
                type="button"
                disabled={isBusy}
                aria-label={t.environments.deployVersion(version)}
                onClick={() => void run(deploy({ ...where, input: { appId, releaseId: id } }))}
              >
                {t.environments.deploy}
              </button>
            )}
          </li>
        ))}
      </ul>
      {current && may('deployment:delete') && (
        <footer>
          <button type="button" className="danger" disabled={isBusy} onClick={() => setUndeploying(true)}>
            {t.environments.undeploy}
          </button>
        </footer>
      )}
    </Dialog>
  );
}
