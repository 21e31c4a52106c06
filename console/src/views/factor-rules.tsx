import { type ReactNode, useState } from 'react';
import {
  MembersWithoutFactorDocument,
  type MembersWithoutFactorQuery,
  type SignInPolicyQuery,
  type StepUp,
  UpdateSignInPolicyDocument,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { FormDialog, linesOf } from '../ground/form';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Rows } from '../ground/rows';
import { count, Time } from '../ground/time';
import { t } from '../texts';

type Policy = SignInPolicyQuery['signInPolicy'];
type Lacking = MembersWithoutFactorQuery['membersWithoutFactor']['nodes'][number];

const stepUps = Object.keys(t.factorRules.stepUps) as StepUp[];

/** Whether members need a second factor, what takes a fresh one, and who lacks one. */
export function FactorRules({ policy }: { policy: Policy }): ReactNode {
  const [isChanging, setChanging] = useState(false);
  const { requireFactor, factorRequiredAt, factorGraceDays, stepUp } = policy;
  return (
    <section aria-labelledby="factor-rules" className="card">
      <header className="toolbar">
        <h2 id="factor-rules" className="grow">
          {t.factorRules.title}
        </h2>
        <button type="button" aria-label={t.factorRules.changeRules} onClick={() => setChanging(true)}>
          {t.signIn.changePolicy}
        </button>
      </header>
      <dl className="facts">
        <div>
          <dt>{t.factorRules.required}</dt>
          <dd>
            {requireFactor && factorRequiredAt ? (
              <>
                {t.factorRules.since} <Time at={factorRequiredAt} />
              </>
            ) : (
              t.signIn.no
            )}
          </dd>
        </div>
        <div>
          <dt>{t.factorRules.grace}</dt>
          <dd>{count(factorGraceDays)}</dd>
        </div>
        <div>
          <dt>{t.factorRules.stepUp}</dt>
          <dd>{stepUp.map((word) => t.factorRules.stepUps[word]).join(', ') || t.none}</dd>
        </div>
      </dl>
      <WithoutFactor />
      {isChanging && <ChangeRules policy={policy} onClose={() => setChanging(false)} />}
    </section>
  );
}

function WithoutFactor() {
  const { orgId } = usePlace();
  const list = usePages(MembersWithoutFactorDocument, { orgId }, ({ membersWithoutFactor }) => membersWithoutFactor);
  return (
    <>
      <h3>{t.factorRules.lacking}</h3>
      <Rows<Lacking>
        label={t.factorRules.lacking}
        list={list}
        idOf={({ userId }) => userId}
        empty={<p className="quiet">{t.factorRules.nobodyLacks}</p>}
        columns={[
          { label: t.name, cell: ({ username }) => username },
          { label: t.factorRules.role, isExtra: true, cell: ({ role }) => t.roles[role] },
          {
            label: t.factorRules.until,
            cell: ({ until, hasIdentity }) =>
              hasIdentity ? t.factorRules.byProvider : until ? <Time at={until} /> : t.factorRules.notDemanded,
          },
        ]}
      />
    </>
  );
}

function ChangeRules({ policy, onClose }: { policy: Policy; onClose: () => void }) {
  const { orgId } = usePlace();
  const update = useChange(UpdateSignInPolicyDocument);
  return (
    <FormDialog
      title={t.factorRules.title}
      action={t.save}
      onClose={onClose}
      fields={[
        {
          name: 'requireFactor',
          label: t.factorRules.required,
          kind: 'check',
          hint: t.factorRules.requiredHint,
          value: String(policy.requireFactor),
        },
        {
          name: 'factorGraceDays',
          label: t.factorRules.grace,
          kind: 'number',
          isRequired: true,
          hint: t.factorRules.graceHint,
          value: String(policy.factorGraceDays),
        },
        {
          name: 'stepUp',
          label: t.factorRules.stepUp,
          kind: 'choices',
          hint: t.factorRules.stepUpHint,
          choices: stepUps.map((value) => ({ value, label: t.factorRules.stepUps[value] })),
          value: policy.stepUp.join('\n'),
        },
      ]}
      onSave={({ requireFactor, factorGraceDays, stepUp }) =>
        update({
          orgId,
          input: {
            requireFactor: requireFactor === 'true',
            factorGraceDays: Number(factorGraceDays),
            stepUp: linesOf(stepUp) as StepUp[],
          },
        })
      }
    />
  );
}
