import { type ReactNode, useState } from 'react';
import { ModelsDocument, type ModelsQuery, RouteOfModelDocument, type RouteOfModelQuery } from '../generated/documents';
import { askPastCache } from '../ground/client';
import { Dialog } from '../ground/dialog';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { count, exact, Time } from '../ground/time';
import { wordOf } from '../ground/words';
import { t } from '../texts';
import { Entitlements } from './entitlements';
import { DeleteModel, NewModel, NewTarget, RemoveTarget } from './model-changes';
import { ModelUsage } from './model-usage';
import { ProviderAccounts } from './provider-accounts';

type Model = ModelsQuery['logicalModels']['nodes'][number];
type Target = Model['targets'][number];
type Change = { kind: 'create' } | { kind: 'target' | 'delete'; id: string };
type Route = RouteOfModelQuery['routeModel'];

const tags = {
  active: 'tag ok',
  degraded: 'tag warn',
  deprecated: 'tag warn',
  disabled: 'tag',
  unavailable: 'tag bad',
};

/** The models of the organization, how their targets are, and what this workspace may use of them. */
export function Models(): ReactNode {
  const { orgId, may, mayInOrganization } = usePlace();
  const withAccounts = mayInOrganization('provider_account:read');
  const list = usePages(ModelsDocument, { orgId, withAccounts }, ({ logicalModels }) => logicalModels);
  const [openId, setOpenId] = useState<string | null>(null);
  const [change, setChange] = useState<Change | null>(null);
  // as it is now, after what was changed in it
  const open = list.rows.find(({ id }) => id === openId);
  const changing = change && 'id' in change ? list.rows.find(({ id }) => id === change.id) : undefined;
  const end = () => setChange(null);
  return (
    <>
      <h1>{t.sections.models}</h1>
      <section aria-labelledby="catalogue">
        <header className="toolbar">
          <h2 id="catalogue" className="grow">
            {t.models.catalogue}
          </h2>
          {withAccounts && mayInOrganization('model:create') && (
            <button type="button" onClick={() => setChange({ kind: 'create' })}>
              {t.models.create}
            </button>
          )}
        </header>
        <Rows<Model>
          label={t.models.catalogue}
          list={list}
          idOf={({ id }) => id}
          empty={<Empty title={t.models.none}>{t.models.noneHint}</Empty>}
          columns={[
            {
              label: t.name,
              cell: (model) => (
                <button type="button" className="plain link" onClick={() => setOpenId(model.id)}>
                  {model.name}
                </button>
              ),
            },
            { label: t.models.model, isExtra: true, cell: ({ logicalModelId }) => <code>{logicalModelId}</code> },
            { label: t.models.type, isExtra: true, cell: ({ modelType }) => wordOf(t.models.kinds, modelType) },
            {
              label: t.models.healthy,
              cell: ({ healthyTargetsCount, totalTargetsCount }) =>
                t.models.healthyOf(healthyTargetsCount, totalTargetsCount),
            },
            {
              label: t.status,
              cell: ({ status, statusReason }) => (
                <span className={tags[status]} title={statusReason ?? undefined}>
                  {t.models.status[status]}
                </span>
              ),
            },
          ]}
        />
      </section>
      <Entitlements />
      {may('model_entitlement:read') && <ModelUsage models={list.rows} />}
      {withAccounts && <ProviderAccounts />}
      {open && !change && <Detail model={open} onChange={setChange} onClose={() => setOpenId(null)} />}
      {change?.kind === 'create' && <NewModel onClose={end} />}
      {change?.kind === 'target' && changing && <NewTarget model={changing} onClose={end} />}
      {change?.kind === 'delete' && changing && <DeleteModel model={changing} onClose={end} />}
    </>
  );
}

/** The targets of a model with their health, and where a request of this workspace would go now. */
function Detail({
  model,
  onChange,
  onClose,
}: {
  model: Model;
  onChange: (change: Change) => void;
  onClose: () => void;
}) {
  const { may, mayInOrganization } = usePlace();
  const { id, name, description, statusReason, targets, fallbackChain, logicalModelId } = model;
  return (
    <Dialog title={name} onClose={onClose} isWide>
      {description && <p>{description}</p>}
      {statusReason && <p className="quiet">{statusReason}</p>}
      <h3>{t.models.targets}</h3>
      {targets.length === 0 ? <p className="quiet">{t.models.noTargets}</p> : <Targets model={model} />}
      {targets.length > 0 && <p className="quiet">{t.models.costHint}</p>}
      {fallbackChain.length > 0 && (
        <p>
          {t.models.fallback}: {fallbackChain.join(' → ')}
        </p>
      )}
      <p className="actions">
        {mayInOrganization('model:update') && mayInOrganization('provider_account:read') && (
          <button type="button" onClick={() => onChange({ kind: 'target', id })}>
            {t.models.addTarget}
          </button>
        )}
        {mayInOrganization('model:delete') && (
          <button type="button" className="danger" onClick={() => onChange({ kind: 'delete', id })}>
            {t.models.deleteOne(name)}
          </button>
        )}
      </p>
      {may('model:execute') && <RouteNow logicalModelId={logicalModelId} />}
    </Dialog>
  );
}

function Targets({ model }: { model: Model }) {
  const { mayInOrganization } = usePlace();
  const mayChange = mayInOrganization('model:update');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached by keyboard
    <section className="wide-table" tabIndex={0} aria-label={t.models.targets}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t.models.target}</th>
            <th scope="col">{t.models.account}</th>
            <th scope="col">{t.models.priority}</th>
            <th scope="col">{t.models.weight}</th>
            <th scope="col">{t.models.health}</th>
            <th scope="col">{t.models.latency}</th>
            <th scope="col">{t.models.cost}</th>
            <th scope="col">{t.models.lastSuccess}</th>
            {mayChange && <td />}
          </tr>
        </thead>
        <tbody>
          {model.targets.map((target) => (
            <tr key={`${target.providerAccountId} ${target.modelName}`}>
              <th scope="row">{target.modelName}</th>
              <td>{target.account?.name ?? target.providerAccountId}</td>
              <td>{target.priority}</td>
              <td>{target.weight}</td>
              <td>
                <Health target={target} />
              </td>
              <td>
                {target.averageLatencyMs === null ? t.models.notReported : count(Math.round(target.averageLatencyMs))}
              </td>
              <td>{target.costPer1kTokens === null ? t.models.notReported : exact(target.costPer1kTokens)}</td>
              <td>{target.lastSuccess ? <Time at={target.lastSuccess} /> : t.never}</td>
              {mayChange && (
                <td>
                  <RemoveTarget model={model} target={target} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Health({ target: { enabled, consecutiveFailures } }: { target: Target }) {
  if (!enabled) return <span className="tag">{t.models.targetOff}</span>;
  if (consecutiveFailures === 0) return <span className="tag ok">{t.models.works}</span>;
  return <span className="tag bad">{t.models.failures(consecutiveFailures)}</span>;
}

/** Asked only when somebody wants to know: the answer is of this moment. */
function RouteNow({ logicalModelId }: { logicalModelId: string }) {
  const { orgId, workspaceId } = usePlace();
  const [route, setRoute] = useState<Route | null>(null);
  const [problem, setProblem] = useState('');
  const ask = async () => {
    const answer = await askPastCache(RouteOfModelDocument, { orgId, workspaceId, logicalModelId });
    setRoute(answer.data?.routeModel ?? null);
    setProblem(answer.problem ?? '');
  };
  return (
    <>
      <p>
        <button type="button" onClick={() => void ask()}>
          {t.models.route}
        </button>
      </p>
      <Problem message={problem} />
      {route && <Explained route={route} />}
    </>
  );
}

function Explained({ route: { refusal, targets, leftOut, strictestRate } }: { route: Route }) {
  return (
    <section aria-live="polite">
      {refusal && <Problem message={refusal.message} />}
      {!refusal && <p>{targets.length === 0 ? t.models.routeNone : t.models.routeOrder}</p>}
      <ol>
        {targets.map((target) => (
          <li key={`${target.logicalModelId} ${target.providerAccountId} ${target.modelName}`}>
            <strong>{target.modelName}</strong> {wordOf(t.accounts.providers, target.providerType)} {target.region}{' '}
            {target.isFallback && <span className="tag">{t.models.isFallback}</span>}{' '}
            {target.isProbe && <span className="tag warn">{t.models.isProbe}</span>}
          </li>
        ))}
      </ol>
      {strictestRate && (
        <p className="quiet">
          {t.models.strictest}: {wordOf(t.models.limitNames, strictestRate.name)}{' '}
          {strictestRate.maximum !== null && t.models.ofLimit(strictestRate.used ?? 0, strictestRate.maximum)}
        </p>
      )}
      {leftOut.length > 0 && (
        <>
          <h3>{t.models.routeLeftOut}</h3>
          <ul className="plain">
            {leftOut.map((one) => (
              <li key={`${one.logicalModelId} ${one.providerAccountId} ${one.modelName} ${one.reason}`}>
                <strong>{one.modelName ?? one.logicalModelId}</strong>{' '}
                <span className="tag">{t.models.reasons[one.reason]}</span> {one.message}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
