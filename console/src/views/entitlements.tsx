import { useState } from 'react';
import {
  EntitlementsDocument,
  type EntitlementsQuery,
  GrantModelDocument,
  ModelNamesDocument,
  TakeModelDocument,
  ToggleEntitlementDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { ConfirmDialog } from '../ground/dialog';
import { FormDialog } from '../ground/form';
import { type Pages, usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { faultOf, Loading, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { count, Time } from '../ground/time';
import { t } from '../texts';

type Entitlement = EntitlementsQuery['modelEntitlements']['nodes'][number];

/** The models that this workspace may use, how much of them, and how much it has used. */
export function Entitlements() {
  const { orgId, workspaceId, may } = usePlace();
  const list = usePages(EntitlementsDocument, { orgId, workspaceId }, ({ modelEntitlements }) => modelEntitlements);
  const [isGranting, setGranting] = useState(false);
  return (
    <section aria-labelledby="entitlements">
      <header className="toolbar">
        <h2 id="entitlements" className="grow">
          {t.models.entitlements}
        </h2>
        {may('model_entitlement:create') && (
          <button type="button" onClick={() => setGranting(true)}>
            {t.models.grant}
          </button>
        )}
      </header>
      <List list={list} />
      {isGranting && <Grant entitled={list.rows} onClose={() => setGranting(false)} />}
    </section>
  );
}

function List({ list }: { list: Pages<Entitlement> & { more: () => void } }) {
  const { orgId, workspaceId, may } = usePlace();
  const toggle = useChange(ToggleEntitlementDocument);
  const take = useChange(TakeModelDocument);
  const [problem, setProblem] = useState('');
  const [leaving, setLeaving] = useState<Entitlement | null>(null);
  const turn = async ({ logicalModelId, enabled, resourceVersion }: Entitlement) => {
    const place = { orgId, workspaceId, logicalModelId };
    const { error } = await toggle({ ...place, enabled: !enabled, expectedVersion: resourceVersion });
    setProblem(error ? faultOf(error).message : '');
  };
  return (
    <>
      <Problem message={problem} />
      <Rows
        label={t.models.entitlements}
        list={list}
        idOf={({ id }) => id}
        empty={<p className="quiet">{t.models.noEntitlements}</p>}
        columns={[
          { label: t.models.model, cell: ({ model }) => model.name },
          { label: t.models.requests, cell: ({ requestCount }) => count(requestCount) },
          { label: t.models.tokens, cell: ({ totalTokens }) => count(totalTokens) },
          { label: t.models.limits, isExtra: true, cell: limitsOf },
          {
            label: t.models.used,
            isExtra: true,
            cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : t.never),
          },
          {
            label: t.status,
            isExtra: true,
            cell: ({ enabled }) => (
              <span className={enabled ? 'tag ok' : 'tag'}>{enabled ? t.models.isOn : t.models.isOff}</span>
            ),
          },
          {
            label: '',
            cell: (row) => (
              <span className="actions">
                {may('model_entitlement:update') && (
                  <button
                    type="button"
                    className="small"
                    aria-label={(row.enabled ? t.models.offOne : t.models.onOne)(row.model.name)}
                    onClick={() => void turn(row)}
                  >
                    {row.enabled ? t.models.turnOff : t.models.turnOn}
                  </button>
                )}
                {may('model_entitlement:delete') && (
                  <button
                    type="button"
                    className="small danger"
                    aria-label={t.models.takeOne(row.model.name)}
                    onClick={() => setLeaving(row)}
                  >
                    {t.models.take}
                  </button>
                )}
              </span>
            ),
          },
        ]}
      />
      {leaving && (
        <ConfirmDialog
          title={t.models.takeOne(leaving.model.name)}
          name={leaving.model.name}
          action={t.models.take}
          onClose={() => setLeaving(null)}
          onConfirm={() => take({ orgId, workspaceId, logicalModelId: leaving.logicalModelId })}
        >
          <p>{t.models.takeHint}</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function limitsOf({ workspaceLimits: { maxRequestsPerDay, maxTokensPerMonth } }: Entitlement): string {
  const limits = [
    ...(maxRequestsPerDay === null ? [] : [t.models.requestsADay(count(maxRequestsPerDay))]),
    ...(maxTokensPerMonth === null ? [] : [t.models.tokensAMonth(count(maxTokensPerMonth))]),
  ];
  return limits.join(', ') || t.models.noLimits;
}

function Grant({ entitled, onClose }: { entitled: readonly Entitlement[]; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const { data } = useAnswer(ModelNamesDocument, { orgId });
  const grant = useChange(GrantModelDocument);
  if (!data) return <Loading />;
  const choices = data.logicalModels.nodes
    .filter(({ logicalModelId }) => !entitled.some((one) => one.logicalModelId === logicalModelId))
    .map(({ logicalModelId, name }) => ({ value: logicalModelId, label: name }));
  return (
    <FormDialog
      title={t.models.grant}
      action={t.models.grant}
      onClose={onClose}
      fields={[
        { name: 'logicalModelId', label: t.models.model, kind: 'choice', isRequired: true, choices },
        { name: 'maxRequestsPerDay', label: t.models.perDay, kind: 'number', hint: t.models.noLimitHint },
        { name: 'maxTokensPerMonth', label: t.models.perMonth, kind: 'number', hint: t.models.noLimitHint },
      ]}
      onSave={({ logicalModelId = '', maxRequestsPerDay, maxTokensPerMonth }) =>
        grant({
          orgId,
          workspaceId,
          input: {
            logicalModelId,
            workspaceLimits: {
              ...(maxRequestsPerDay && { maxRequestsPerDay: Number(maxRequestsPerDay) }),
              ...(maxTokensPerMonth && { maxTokensPerMonth: Number(maxTokensPerMonth) }),
            },
          },
        })
      }
    />
  );
}
