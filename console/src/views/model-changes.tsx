import { useState } from 'react';
import {
  ChangeTargetsDocument,
  CreateModelDocument,
  DeleteModelDocument,
  type ModelsQuery,
  ProviderAccountsDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { ConfirmDialog, Dialog } from '../ground/dialog';
import { type FieldSpec, FormDialog, type Values } from '../ground/form';
import { usePlace } from '../ground/place';
import { faultOf, Loading, Problem } from '../ground/problem';
import { t } from '../texts';

type Model = ModelsQuery['logicalModels']['nodes'][number];
type Target = Model['targets'][number];

/** A new model, with the first place that its requests go to. */
export function NewModel({ onClose }: { onClose: () => void }) {
  const { orgId } = usePlace();
  const accounts = useAccounts();
  const create = useChange(CreateModelDocument);
  if (!accounts) return <Loading />;
  return (
    <FormDialog
      title={t.models.create}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'logicalModelId', label: t.models.id, isRequired: true, hint: t.models.idHint },
        { name: 'name', label: t.name, isRequired: true },
        {
          name: 'modelType',
          label: t.models.kind,
          kind: 'choice',
          isRequired: true,
          choices: Object.entries(t.models.kinds).map(([value, label]) => ({ value, label })),
        },
        ...targetFields(accounts, false),
      ]}
      onSave={({ logicalModelId = '', name = '', modelType = '', ...target }) =>
        create({
          orgId,
          input: {
            logicalModelId,
            name,
            modelType,
            ...(target.providerAccountId && target.modelName && { targets: [targetOf(target)] }),
          },
        })
      }
    />
  );
}

/** Another place that the requests of a model may go to. */
export function NewTarget({ model, onClose }: { model: Model; onClose: () => void }) {
  const { orgId } = usePlace();
  const accounts = useAccounts();
  const change = useChange(ChangeTargetsDocument);
  if (!accounts) return <Loading />;
  if (accounts.length === 0)
    return (
      <Dialog title={t.models.addTarget} onClose={onClose}>
        <p>{t.models.noAccounts}</p>
      </Dialog>
    );
  return (
    <FormDialog
      title={t.models.addTarget}
      action={t.models.addTarget}
      onClose={onClose}
      fields={[
        ...targetFields(accounts, true),
        { name: 'priority', label: t.models.priority, kind: 'number', value: '1', hint: t.models.priorityHint },
        { name: 'weight', label: t.models.weight, kind: 'number', value: '100', hint: t.models.weightHint },
      ]}
      onSave={(values) =>
        change({ orgId, ...changedTargets(model, [...model.targets.map(sentTarget), targetOf(values)]) })
      }
    />
  );
}

/** Takes a target from a model. The others stay as they are. */
export function RemoveTarget({ model, target }: { model: Model; target: Target }) {
  const { orgId } = usePlace();
  const change = useChange(ChangeTargetsDocument);
  const [problem, setProblem] = useState('');
  const remove = async () => {
    const others = model.targets.filter((other) => other !== target).map(sentTarget);
    const { error } = await change({ orgId, ...changedTargets(model, others) });
    setProblem(error ? faultOf(error).message : '');
  };
  return (
    <>
      <button
        type="button"
        className="small danger"
        aria-label={t.models.removeTargetOne(target.modelName)}
        onClick={() => void remove()}
      >
        {t.models.removeTarget}
      </button>
      <Problem message={problem} />
    </>
  );
}

export function DeleteModel({ model, onClose }: { model: Model; onClose: () => void }) {
  const { orgId } = usePlace();
  const remove = useChange(DeleteModelDocument);
  const { name, logicalModelId } = model;
  return (
    <ConfirmDialog
      title={t.models.deleteOne(name)}
      name={name}
      action={t.delete}
      onClose={onClose}
      onConfirm={() => remove({ orgId, logicalModelId })}
    >
      <p>{t.models.deleteHint}</p>
    </ConfirmDialog>
  );
}

type Choice = { value: string; label: string };

/** The accounts to choose from; `null` until they are read. */
function useAccounts(): Choice[] | null {
  const { orgId } = usePlace();
  const { data } = useAnswer(ProviderAccountsDocument, { orgId });
  return data?.providerAccounts.nodes.map(({ id, name }) => ({ value: id, label: name })) ?? null;
}

const targetFields = (accounts: readonly Choice[], isRequired: boolean): FieldSpec[] => [
  { name: 'providerAccountId', label: t.models.account, kind: 'choice', isRequired, choices: accounts },
  { name: 'modelName', label: t.models.atProvider, isRequired },
];

const targetOf = ({ providerAccountId = '', modelName = '', priority, weight }: Values) => ({
  providerAccountId,
  modelName,
  ...(priority && { priority: Number(priority) }),
  ...(weight && { weight: Number(weight) }),
});

/** A target that stays, as it is sent: given targets take the place of all. */
const sentTarget = (target: Target) => ({
  providerAccountId: target.providerAccountId,
  modelName: target.modelName,
  priority: target.priority,
  weight: target.weight,
  enabled: target.enabled,
  maxTokensOverride: target.maxTokensOverride,
  temperatureOverride: target.temperatureOverride,
});

const changedTargets = <Sent,>({ logicalModelId, resourceVersion }: Model, targets: Sent) => ({
  logicalModelId,
  targets,
  expectedVersion: resourceVersion,
});
