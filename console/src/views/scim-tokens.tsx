import { useState } from 'react';
import {
  CreateScimTokenDocument,
  DeleteScimTokenDocument,
  ScimTokensDocument,
  type ScimTokensQuery,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { ConfirmDialog } from '../ground/dialog';
import { FormDialog } from '../ground/form';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Rows } from '../ground/rows';
import { ShownOnce } from '../ground/shown-once';
import { Time } from '../ground/time';
import { t } from '../texts';

type Token = ScimTokensQuery['scimTokens']['nodes'][number];
type Issued = { name: string; token: string; url: string };

/** The tokens of directories that keep the members of the organization. */
export function ScimTokens() {
  const { orgId, mayInOrganization } = usePlace();
  const list = usePages(ScimTokensDocument, { orgId }, ({ scimTokens }) => scimTokens);
  const remove = useChange(DeleteScimTokenDocument);
  const [isCreating, setCreating] = useState(false);
  const [issued, setIssued] = useState<Issued | null>(null);
  const [leaving, setLeaving] = useState<Token | null>(null);
  return (
    <section aria-labelledby="scim">
      <header className="toolbar">
        <h2 id="scim" className="grow">
          {t.signIn.scim}
        </h2>
        {mayInOrganization('scim_token:create') && (
          <button type="button" onClick={() => setCreating(true)}>
            {t.signIn.createScim}
          </button>
        )}
      </header>
      <Rows<Token>
        label={t.signIn.scim}
        list={list}
        idOf={({ id }) => id}
        empty={<p className="quiet">{t.signIn.noScim}</p>}
        columns={[
          {
            label: t.name,
            cell: ({ name, prefix }) => (
              <>
                {name} <code className="quiet">{prefix}…</code>
              </>
            ),
          },
          {
            label: t.tokens.until,
            isExtra: true,
            cell: ({ expiresAt }) => (expiresAt ? <Time at={expiresAt} /> : t.never),
          },
          {
            label: t.tokens.used,
            cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : t.never),
          },
          {
            label: '',
            cell: (token) =>
              mayInOrganization('scim_token:delete') && (
                <button
                  type="button"
                  className="small danger"
                  aria-label={t.signIn.revokeOne(token.name)}
                  onClick={() => setLeaving(token)}
                >
                  {t.tokens.revoke}
                </button>
              ),
          },
        ]}
      />
      {isCreating && <NewScimToken onIssued={setIssued} onClose={() => setCreating(false)} />}
      {issued && !isCreating && (
        <ShownOnce
          title={t.signIn.scimOf(issued.name)}
          parts={[
            { label: t.signIn.scimUrl, text: issued.url },
            { label: t.signIn.scimToken, text: issued.token },
          ]}
          onClose={() => setIssued(null)}
        />
      )}
      {leaving && (
        <ConfirmDialog
          title={t.signIn.revokeOne(leaving.name)}
          name={leaving.name}
          action={t.tokens.revoke}
          onClose={() => setLeaving(null)}
          onConfirm={() => remove({ orgId, id: leaving.id })}
        >
          <p>{t.signIn.deleteScimHint}</p>
        </ConfirmDialog>
      )}
    </section>
  );
}

function NewScimToken({ onIssued, onClose }: { onIssued: (issued: Issued) => void; onClose: () => void }) {
  const { orgId } = usePlace();
  const create = useChange(CreateScimTokenDocument);
  return (
    <FormDialog
      title={t.signIn.createScim}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true },
        { name: 'expiresInDays', label: t.tokens.days, kind: 'number', isRequired: true, value: '365' },
      ]}
      onSave={async ({ name = '', expiresInDays }) => {
        const result = await create({ orgId, input: { name, expiresInDays: Number(expiresInDays) } });
        const made = result.data?.createScimToken;
        if (made) onIssued({ name: made.scimToken.name, token: made.plaintextToken, url: made.baseUrl });
        return result;
      }}
    />
  );
}
