import { type ReactNode, useState } from 'react';
import {
  AppsDocument,
  CreateEnvironmentDocument,
  DeleteEnvironmentDocument,
  DeploymentsDocument,
  EnvironmentNowDocument,
  EnvironmentsDocument,
  type EnvironmentsQuery,
  UpdateEnvironmentDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { useCreating } from '../ground/asked';
import { askPastCache } from '../ground/client';
import { ConfirmDialog } from '../ground/dialog';
import { useFilters } from '../ground/filters';
import { FormDialog } from '../ground/form';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, Loading, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { Time } from '../ground/time';
import { t } from '../texts';
import { DeployDialog } from './deploy';
import { DeploymentLine, releasesOf } from './deployment-line';

export type Environment = EnvironmentsQuery['environments']['nodes'][number];
type Step = { kind: 'edit' | 'delete'; environment: Environment };

/** The environments of a workspace side by side: what runs where, and how it came there. */
export function Environments(): ReactNode {
  const { orgId, workspaceId, may } = usePlace();
  const { data, error } = useAnswer(EnvironmentsDocument, { orgId, workspaceId });
  const apps = usePages(AppsDocument, { orgId, workspaceId }, (answer) => answer.apps, { all: 1_000 });
  const [{ environment: chosen }] = useFilters<'environment'>();
  const [step, setStep] = useState<Step | null>(null);
  const [isCreating, setCreating] = useCreating(may('environment:create'));
  const environments = data?.environments.nodes ?? [];
  const close = () => setStep(null);
  const current = environments.find(({ id }) => id === chosen) ?? environments[0];
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.environments}</h1>
        {may('environment:create') && (
          <button type="button" className="primary" onClick={() => setCreating(true)}>
            {t.environments.create}
          </button>
        )}
      </header>
      <Problem error={error ?? apps.error} />
      {!data && !error && <Loading />}
      {data && environments.length === 0 && <Empty title={t.environments.none}>{t.environments.noneHint}</Empty>}
      {environments.length > 0 && <Board environments={environments} apps={apps.rows} onStep={setStep} />}
      {current && <History environments={environments} current={current} />}
      {isCreating && <NewEnvironment onClose={() => setCreating(false)} />}
      {step?.kind === 'edit' && <EditEnvironment environment={step.environment} onClose={close} />}
      {step?.kind === 'delete' && <DeleteEnvironment environment={step.environment} onClose={close} />}
    </>
  );
}

function Board({
  environments,
  apps,
  onStep,
}: {
  environments: readonly Environment[];
  apps: readonly { id: string; name: string }[];
  onStep: (step: Step) => void;
}) {
  const { may } = usePlace();
  const [deploying, setDeploying] = useState<{ environment: Environment; appId: string; name: string } | null>(null);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached by keyboard
    <section className="wide-table" tabIndex={0} aria-label={t.environments.board}>
      <table className="matrix">
        <thead>
          <tr>
            <th scope="col">{t.apps.one}</th>
            {environments.map((environment) => (
              <th scope="col" key={environment.id}>
                {environment.name}{' '}
                {environment.status !== 'active' && (
                  <span className="tag warn">{t.environments.status[environment.status]}</span>
                )}
                {environment.isDefault && <span className="tag">{t.environments.isDefault}</span>}
                <span className="actions">
                  {may('environment:update') && (
                    <button
                      type="button"
                      className="plain small"
                      aria-label={t.environments.edit(environment.name)}
                      onClick={() => onStep({ kind: 'edit', environment })}
                    >
                      {t.edit}
                    </button>
                  )}
                  {may('environment:delete') && (
                    <button
                      type="button"
                      className="plain small"
                      aria-label={t.environments.deleteOne(environment.name)}
                      onClick={() => onStep({ kind: 'delete', environment })}
                    >
                      {t.delete}
                    </button>
                  )}
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {apps.length === 0 && (
            <tr>
              <td colSpan={environments.length + 1} className="quiet">
                {t.environments.noApps}
              </td>
            </tr>
          )}
          {apps.map(({ id, name }) => (
            <tr key={id}>
              <th scope="row">{name}</th>
              {environments.map((environment) => {
                const deployment = environment.deployed.nodes.find(({ appId }) => appId === id);
                const what = deployment?.release?.version ?? t.environments.nothing;
                const action = deployment ? t.environments.deployOrRollBack : t.environments.deploy;
                return (
                  <td key={environment.id}>
                    {what}{' '}
                    {deployment && (
                      <small className="quiet">
                        <Time at={deployment.deployedAt} />
                      </small>
                    )}
                    {may('deployment:create') && (
                      <span className="actions">
                        <button
                          type="button"
                          className="small"
                          aria-label={t.environments.change(action, name, environment.name, what)}
                          onClick={() => setDeploying({ environment, appId: id, name })}
                        >
                          {action}
                        </button>
                      </span>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {deploying && <DeployDialog {...deploying} environments={environments} onClose={() => setDeploying(null)} />}
    </section>
  );
}

function History({ environments, current }: { environments: readonly Environment[]; current: Environment }) {
  const { orgId, workspaceId } = usePlace();
  const [, change] = useFilters<'environment'>();
  const variables = { orgId, workspaceId, environmentId: current.id };
  const list = usePages(DeploymentsDocument, variables, ({ deployments }) => deployments);
  return (
    <section aria-labelledby="history">
      <header className="toolbar">
        <h2 id="history" className="grow">
          {t.environments.history}
        </h2>
        <select
          aria-label={t.environments.one}
          value={current.id}
          onChange={(event) => change({ environment: event.target.value })}
        >
          {environments.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </header>
      <DeploymentLine key={current.id} list={list} />
      <Rows
        label={t.environments.history}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.environments.noHistory} />}
        columns={[
          { label: t.when, cell: ({ deployedAt }) => <Time at={deployedAt} /> },
          { label: t.apps.one, cell: ({ app }) => app?.name },
          { label: t.environments.action, cell: ({ action }) => t.environments.actions[action] },
          {
            label: t.environments.release,
            cell: releasesOf,
          },
          { label: t.who, isExtra: true, cell: ({ deployedByUser }) => deployedByUser?.username },
        ]}
      />
    </section>
  );
}

const slugOf = (name: string) =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');

function NewEnvironment({ onClose }: { onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const create = useChange(CreateEnvironmentDocument);
  return (
    <FormDialog
      title={t.environments.create}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true },
        { name: 'slug', label: t.environments.slug, hint: t.environments.slugHint },
        { name: 'description', label: t.description, kind: 'lines' },
      ]}
      onSave={({ name = '', slug, description }) =>
        create({
          orgId,
          workspaceId,
          input: { name, slug: slug || slugOf(name), ...(description && { description }) },
        })
      }
    />
  );
}

function EditEnvironment({ environment, onClose }: { environment: Environment; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const update = useChange(UpdateEnvironmentDocument);
  const [version, setVersion] = useState(environment.resourceVersion);
  const { id } = environment;
  return (
    <FormDialog
      title={t.environments.edit(environment.name)}
      action={t.save}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true, value: environment.name },
        { name: 'description', label: t.description, kind: 'lines', value: environment.description ?? '' },
        {
          name: 'status',
          label: t.status,
          kind: 'choice',
          isRequired: true,
          value: environment.status,
          choices: (['active', 'locked', 'archived'] as const).map((value) => ({
            value,
            label: t.environments.status[value],
          })),
        },
      ]}
      onSave={({ name = '', description, status }) =>
        update({
          orgId,
          workspaceId,
          id,
          expectedVersion: version,
          input: {
            name,
            description: description || null,
            status: status === 'locked' || status === 'archived' ? status : 'active',
          },
        })
      }
      conflictOf={async () => {
        const { data } = await askPastCache(EnvironmentNowDocument, { orgId, workspaceId, id });
        if (!data) return null;
        const { name, description, status, resourceVersion } = data.environment;
        setVersion(resourceVersion);
        return { name, description: description ?? '', status };
      }}
    />
  );
}

function DeleteEnvironment({ environment, onClose }: { environment: Environment; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const remove = useChange(DeleteEnvironmentDocument);
  const { id, name, deployed } = environment;
  return (
    <ConfirmDialog
      title={t.environments.deleteOne(name)}
      name={name}
      action={t.delete}
      onClose={onClose}
      onConfirm={() => remove({ orgId, workspaceId, id })}
    >
      <p>{t.environments.deleteHint}</p>
      {deployed.nodes.length > 0 && (
        <ul>
          {deployed.nodes.map((deployment) => (
            <li key={deployment.id}>
              {t.environments.runs(deployment.app?.name ?? '', deployment.release?.version ?? '')}
            </li>
          ))}
        </ul>
      )}
    </ConfirmDialog>
  );
}
