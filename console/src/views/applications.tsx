import { useState } from 'react';
import {
  ApplicationGrantsDocument,
  type ApplicationGrantsQuery,
  ApplicationsDocument,
  type ApplicationsQuery,
  CreateApplicationDocument,
  DeleteApplicationDocument,
  RevokeApplicationGrantDocument,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { ConfirmDialog } from '../ground/dialog';
import { FormDialog, linesOf } from '../ground/form';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty } from '../ground/problem';
import { Rows } from '../ground/rows';
import { ShownOnce } from '../ground/shown-once';
import { Time } from '../ground/time';
import { t } from '../texts';

type Application = ApplicationsQuery['applications']['nodes'][number];
type Grant = ApplicationGrantsQuery['applicationGrants']['nodes'][number];
type Credentials = { name: string; id: string; secret: string | null };

/** The applications that the organization has registered. */
export function Applications() {
  const { orgId, mayInOrganization } = usePlace();
  const list = usePages(ApplicationsDocument, { orgId }, ({ applications }) => applications);
  const [isCreating, setCreating] = useState(false);
  const [issued, setIssued] = useState<Credentials | null>(null);
  const [leaving, setLeaving] = useState<Application | null>(null);
  return (
    <section aria-labelledby="applications">
      <header className="toolbar">
        <h2 id="applications" className="grow">
          {t.applications.title}
        </h2>
        {mayInOrganization('application:create') && (
          <button type="button" onClick={() => setCreating(true)}>
            {t.applications.create}
          </button>
        )}
      </header>
      <Rows
        label={t.applications.title}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.applications.none}>{t.applications.noneHint}</Empty>}
        columns={[
          { label: t.name, cell: ({ name }) => name },
          {
            label: t.applications.type,
            isExtra: true,
            cell: ({ applicationType }) => t.applications.types[applicationType],
          },
          { label: t.applications.id, isExtra: true, cell: ({ id }) => <code>{id}</code> },
          {
            label: t.applications.redirectUris,
            isExtra: true,
            cell: ({ redirectUris }) => redirectUris.join(', '),
          },
          {
            label: '',
            cell: (application) =>
              mayInOrganization('application:delete') && (
                <button
                  type="button"
                  className="small danger"
                  aria-label={t.applications.deleteOne(application.name)}
                  onClick={() => setLeaving(application)}
                >
                  {t.delete}
                </button>
              ),
          },
        ]}
      />
      {isCreating && <NewApplication onIssued={setIssued} onClose={() => setCreating(false)} />}
      {issued && !isCreating && (
        <ShownOnce
          title={t.applications.credentialsOf(issued.name)}
          parts={[
            { label: t.applications.id, text: issued.id },
            ...(issued.secret ? [{ label: t.applications.secret, text: issued.secret }] : []),
          ]}
          onClose={() => setIssued(null)}
        />
      )}
      {leaving && <DeleteApplication application={leaving} onClose={() => setLeaving(null)} />}
    </section>
  );
}

function NewApplication({ onIssued, onClose }: { onIssued: (issued: Credentials) => void; onClose: () => void }) {
  const { orgId } = usePlace();
  const create = useChange(CreateApplicationDocument);
  const { confidential, public: atUsers } = t.applications.types;
  return (
    <FormDialog
      title={t.applications.create}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true },
        {
          name: 'applicationType',
          label: t.applications.type,
          kind: 'choice',
          isRequired: true,
          choices: [
            { value: 'confidential', label: confidential },
            { value: 'public', label: atUsers },
          ],
        },
        {
          name: 'redirectUris',
          label: t.applications.redirectUris,
          kind: 'lines',
          hint: t.applications.redirectUrisHint,
        },
        { name: 'description', label: t.description, kind: 'lines' },
      ]}
      onSave={async (values) => {
        const result = await create({
          orgId,
          input: {
            name: values.name ?? '',
            applicationType: values.applicationType === 'public' ? 'public' : 'confidential',
            redirectUris: linesOf(values.redirectUris),
            ...(values.description && { description: values.description }),
          },
        });
        const made = result.data?.createApplication;
        if (made) onIssued({ ...made.application, secret: made.secret });
        return result;
      }}
    />
  );
}

function DeleteApplication({ application, onClose }: { application: Application; onClose: () => void }) {
  const { orgId } = usePlace();
  const remove = useChange(DeleteApplicationDocument);
  const { id, name } = application;
  return (
    <ConfirmDialog
      title={t.applications.deleteOne(name)}
      name={name}
      action={t.delete}
      onClose={onClose}
      onConfirm={() => remove({ orgId, id })}
    >
      <p>{t.applications.deleteHint}</p>
    </ConfirmDialog>
  );
}

const applicationOf = ({ application, applicationId }: Grant) => application?.name ?? applicationId;
const userOf = ({ user, userId }: Grant) => user?.username ?? userId;

/** What members have granted to applications. */
export function Grants() {
  const { orgId, mayInOrganization } = usePlace();
  const list = usePages(ApplicationGrantsDocument, { orgId }, ({ applicationGrants }) => applicationGrants);
  const revoke = useChange(RevokeApplicationGrantDocument);
  const [leaving, setLeaving] = useState<Grant | null>(null);
  return (
    <section aria-labelledby="grants">
      <h2 id="grants">{t.applications.grants}</h2>
      <Rows
        label={t.applications.grants}
        list={list}
        idOf={({ id }) => id}
        empty={<p className="quiet">{t.applications.noGrants}</p>}
        columns={[
          { label: t.applications.application, cell: applicationOf },
          { label: t.who, cell: userOf },
          { label: t.tokens.scopes, isExtra: true, cell: ({ scopes }) => scopes.join(', ') },
          {
            label: t.tokens.used,
            isExtra: true,
            cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : t.never),
          },
          {
            label: '',
            cell: (grant) =>
              mayInOrganization('application_grant:revoke') && (
                <button
                  type="button"
                  className="small danger"
                  aria-label={t.applications.revokeOne(applicationOf(grant), userOf(grant))}
                  onClick={() => setLeaving(grant)}
                >
                  {t.applications.revoke}
                </button>
              ),
          },
        ]}
      />
      {leaving && (
        <ConfirmDialog
          title={t.applications.revokeOne(applicationOf(leaving), userOf(leaving))}
          name={userOf(leaving)}
          action={t.applications.revoke}
          onClose={() => setLeaving(null)}
          onConfirm={() => revoke({ orgId, id: leaving.id })}
        >
          <p>{t.applications.revokeHint}</p>
        </ConfirmDialog>
      )}
    </section>
  );
}
