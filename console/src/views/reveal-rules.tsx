import { type ReactNode, useState } from 'react';
import { type SignInPolicyQuery, UpdateSignInPolicyDocument } from '../generated/documents';
import { useChange } from '../ground/answers';
import { FormDialog } from '../ground/form';
import { usePlace } from '../ground/place';
import { t } from '../texts';

/** Whether secrets are revealed only for a reason. */
export function RevealRules({ policy }: { policy: SignInPolicyQuery['signInPolicy'] }): ReactNode {
  const [isChanging, setChanging] = useState(false);
  return (
    <section aria-labelledby="reveal-rules" className="card">
      <header className="toolbar">
        <h2 id="reveal-rules" className="grow">
          {t.revealRules.title}
        </h2>
        <button type="button" aria-label={t.revealRules.change} onClick={() => setChanging(true)}>
          {t.signIn.changePolicy}
        </button>
      </header>
      <dl className="facts">
        <div>
          <dt>{t.revealRules.required}</dt>
          <dd>{policy.requireRevealReason ? t.signIn.yes : t.signIn.no}</dd>
        </div>
      </dl>
      {isChanging && <ChangeRule isRequired={policy.requireRevealReason} onClose={() => setChanging(false)} />}
    </section>
  );
}

function ChangeRule({ isRequired, onClose }: { isRequired: boolean; onClose: () => void }) {
  const { orgId } = usePlace();
  const update = useChange(UpdateSignInPolicyDocument);
  return (
    <FormDialog
      title={t.revealRules.title}
      action={t.save}
      onClose={onClose}
      fields={[
        {
          name: 'requireRevealReason',
          label: t.revealRules.required,
          kind: 'check',
          hint: t.revealRules.hint,
          value: String(isRequired),
        },
      ]}
      onSave={({ requireRevealReason }) =>
        update({ orgId, input: { requireRevealReason: requireRevealReason === 'true' } })
      }
    />
  );
}
