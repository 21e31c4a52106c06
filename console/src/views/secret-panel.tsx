import { type ReactNode, useId, useState } from 'react';
import {
  DeleteSecretDocument,
  RevealSecretDocument,
  RotateSecretDocument,
  type SecretCellFragment,
  SecretNowDocument,
  SecretUsesDocument,
  SecretVersionsDocument,
  type SecretVersionsQuery,
  UpdateSecretDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { askPastCache } from '../ground/client';
import { ConfirmDialog, Dialog } from '../ground/dialog';
import { FormDialog } from '../ground/form';
import { usePlace } from '../ground/place';
import { CopyButton, Loading, Problem } from '../ground/problem';
import { Time } from '../ground/time';
import { wordOf } from '../ground/words';
import { t } from '../texts';
import { actorOf, reasonOf, verbOf } from './activity-row';
import { asValue } from './secret-values';

type Step = 'look' | 'edit' | 'rotate' | 'delete' | 'versions';

/** One secret: its value on demand, its versions, who used it, and what may be done with it. */
export function SecretPanel({ id, onClose }: { id: string; onClose: () => void }) {
  const { orgId, may } = usePlace();
  const { data, error } = useAnswer(SecretNowDocument, { orgId, id });
  const [step, setStep] = useState<Step>('look');
  const secret = data?.secret;
  const back = () => setStep('look');
  if (secret && step === 'edit') return <EditSecret secret={secret} onClose={back} />;
  if (secret && step === 'rotate') return <Rotate secret={secret} onClose={back} />;
  if (secret && step === 'delete') return <DeleteSecret secret={secret} onClose={back} onGone={onClose} />;
  if (secret && step === 'versions') return <Versions secret={secret} onClose={back} />;
  return (
    <Dialog title={secret?.name ?? t.secrets.one} onClose={onClose} isWide>
      <Problem error={error} />
      {!secret && !error && <Loading />}
      {secret && (
        <>
          {secret.description && <p>{secret.description}</p>}
          {may('secret:reveal') && <Value id={id} />}
          <dl className="facts">
            <Fact label={t.secrets.type}>{wordOf(t.secrets.types, secret.secretType)}</Fact>
            <Fact label={t.secrets.version}>{secret.vaultVersion}</Fact>
            <Fact label={t.secrets.reads}>{secret.accessCount}</Fact>
            {secret.lastAccessedAt && (
              <Fact label={t.secrets.lastRead}>
                <Time at={secret.lastAccessedAt} />
              </Fact>
            )}
            {secret.lastRotatedAt && (
              <Fact label={t.secrets.lastRotated}>
                <Time at={secret.lastRotatedAt} />
              </Fact>
            )}
            {secret.expiresAt && (
              <Fact label={t.secrets.expiresAt}>
                <Time at={secret.expiresAt} />
              </Fact>
            )}
          </dl>
          <Uses id={id} />
          <footer>
            <button type="button" onClick={() => setStep('versions')}>
              {t.secrets.versions}
            </button>
            {may('secret:update') && (
              <button type="button" onClick={() => setStep('edit')}>
                {t.edit}
              </button>
            )}
            {may('secret:delete') && (
              <button type="button" className="danger" onClick={() => setStep('delete')}>
                {t.delete}
              </button>
            )}
            {may('secret:rotate') && (
              <button type="button" className="primary" onClick={() => setStep('rotate')}>
                {t.secrets.rotate}
              </button>
            )}
          </footer>
        </>
      )}
    </Dialog>
  );
}

const Fact = ({ label, children }: { label: string; children: ReactNode }) => (
  <div>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </div>
);

/** Shows what is secret, and asks why. */
function RevealForm({ action, onReveal }: { action: string; onReveal: (reason: string | null) => Promise<void> }) {
  const { requiresRevealReason } = usePlace().organization;
  const [reason, setReason] = useState('');
  const hint = useId();
  return (
    <form
      className="reveal"
      onSubmit={(event) => {
        event.preventDefault();
        void onReveal(reason.trim() || null);
      }}
    >
      <label className="field">
        <span>{requiresRevealReason ? t.secrets.reasonDemanded : t.secrets.reason}</span>
        <input
          value={reason}
          required={requiresRevealReason}
          maxLength={500}
          autoComplete="off"
          aria-describedby={hint}
          onChange={(event) => setReason(event.target.value)}
        />
      </label>
      <p id={hint} className="quiet">
        {t.secrets.revealHint}
      </p>
      <button type="submit">{action}</button>
    </form>
  );
}

/** The value, kept by this component alone: it is gone when the dialog closes. */
function Value({ id }: { id: string }) {
  const { orgId } = usePlace();
  const [value, setValue] = useState<Record<string, unknown> | null>(null);
  const [problem, setProblem] = useState('');
  const reveal = async (reason: string | null) => {
    const answer = await askPastCache(RevealSecretDocument, { orgId, id, reason });
    setValue(answer.data?.secret.value ?? null);
    setProblem(answer.problem ?? '');
  };
  if (!value)
    return (
      <>
        <RevealForm action={t.secrets.reveal} onReveal={reveal} />
        <Problem message={problem} />
      </>
    );
  return (
    <dl className="value">
      {Object.entries(value).map(([key, part]) => {
        const text = typeof part === 'string' ? part : JSON.stringify(part);
        return (
          <div key={key}>
            <dt>{key}</dt>
            <dd>
              <code>{text}</code> <CopyButton text={text} label={t.copy} />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function Uses({ id }: { id: string }) {
  const { orgId, workspaceId } = usePlace();
  const { data } = useAnswer(SecretUsesDocument, { orgId, workspaceId, id });
  const records = data?.workspaceActivity.nodes ?? [];
  if (records.length === 0) return null;
  return (
    <details>
      <summary>{t.secrets.uses}</summary>
      <ul className="plain feed">
        {records.map((record) => (
          <li key={record.id}>
            <strong>{actorOf(record)}</strong> {verbOf(record.action)} <Time at={record.timestamp} />{' '}
            <span className="quiet">{reasonOf(record)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Versions({ secret: { id, name }, onClose }: { secret: SecretCellFragment; onClose: () => void }) {
  const { orgId, may } = usePlace();
  const [history, setHistory] = useState<SecretVersionsQuery['secretVersions'] | null>(null);
  const [problem, setProblem] = useState('');
  const load = async (reason: string | null) => {
    const answer = await askPastCache(SecretVersionsDocument, { orgId, id, reason });
    setHistory(answer.data?.secretVersions ?? null);
    setProblem(answer.problem ?? '');
  };
  return (
    <Dialog title={t.secrets.versionsOf(name)} onClose={onClose} isWide>
      <Problem message={problem} />
      {!history && may('secret:reveal') && <RevealForm action={t.secrets.showVersions} onReveal={load} />}
      {!history && !may('secret:reveal') && (
        <button type="button" onClick={() => void load(null)}>
          {t.secrets.listVersions}
        </button>
      )}
      {history && (
        <table>
          <thead>
            <tr>
              <th scope="col">{t.secrets.version}</th>
              <th scope="col">{t.secrets.value}</th>
              <th scope="col">{t.when}</th>
              <th scope="col">{t.who}</th>
            </tr>
          </thead>
          <tbody>
            {history.versions.map(({ version, value, createdAt, createdByUser, state }) => (
              <tr key={version}>
                <th scope="row">
                  {version} {version === history.currentVersion && <span className="tag ok">{t.secrets.current}</span>}
                </th>
                <td>{value ? <code>{JSON.stringify(value)}</code> : <span className="quiet">{state}</span>}</td>
                <td>
                  <Time at={createdAt} />
                </td>
                <td>{createdByUser?.username}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Dialog>
  );
}

function EditSecret({ secret, onClose }: { secret: SecretCellFragment; onClose: () => void }) {
  const { orgId } = usePlace();
  const update = useChange(UpdateSecretDocument);
  const [version, setVersion] = useState(secret.resourceVersion);
  const { id } = secret;
  return (
    <FormDialog
      title={t.secrets.edit(secret.name)}
      action={t.save}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true, value: secret.name },
        { name: 'description', label: t.description, value: secret.description ?? '' },
        {
          name: 'status',
          label: t.status,
          kind: 'choice',
          isRequired: true,
          value: secret.status,
          choices: [
            { value: 'active', label: t.secrets.active },
            { value: 'disabled', label: t.secrets.disabled },
          ],
        },
        {
          name: 'rotationReminderDays',
          label: t.secrets.reminder,
          kind: 'number',
          value: String(secret.rotationReminderDays ?? ''),
        },
      ]}
      onSave={({ name = '', description, status, rotationReminderDays }) =>
        update({
          orgId,
          id,
          expectedVersion: version,
          input: {
            name,
            description: description || null,
            status: status === 'disabled' ? 'disabled' : 'active',
            rotationReminderDays: rotationReminderDays ? Number(rotationReminderDays) : null,
          },
        })
      }
      conflictOf={async () => {
        const { data } = await askPastCache(SecretNowDocument, { orgId, id });
        if (!data) return null;
        const { name, description, status, rotationReminderDays, resourceVersion } = data.secret;
        setVersion(resourceVersion);
        return {
          name,
          description: description ?? '',
          status,
          rotationReminderDays: String(rotationReminderDays ?? ''),
        };
      }}
    />
  );
}

function Rotate({ secret: { id, name, vaultVersion }, onClose }: { secret: SecretCellFragment; onClose: () => void }) {
  const { orgId } = usePlace();
  const rotate = useChange(RotateSecretDocument);
  const [expectedVersion] = useState(vaultVersion);
  return (
    <FormDialog
      title={t.secrets.rotateOne(name)}
      action={t.secrets.rotate}
      onClose={onClose}
      fields={[
        {
          name: 'value',
          label: t.secrets.newValue,
          kind: 'lines',
          isRequired: true,
          isSecret: true,
          hint: t.secrets.valueHint,
        },
      ]}
      onSave={({ value = '' }) => rotate({ orgId, id, input: { value: asValue(value), expectedVersion } })}
    />
  );
}

function DeleteSecret({
  secret: { id, name },
  onClose,
  onGone,
}: {
  secret: SecretCellFragment;
  onClose: () => void;
  onGone: () => void;
}) {
  const { orgId } = usePlace();
  const remove = useChange(DeleteSecretDocument);
  return (
    <ConfirmDialog
      title={t.secrets.deleteOne(name)}
      name={name}
      action={t.delete}
      onClose={onClose}
      onConfirm={async () => {
        const result = await remove({ orgId, id, permanent: false });
        if (!result.error) onGone();
        return result;
      }}
    >
      <p>{t.secrets.deleteHint}</p>
    </ConfirmDialog>
  );
}
