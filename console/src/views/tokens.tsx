import { type ReactNode, useState } from 'react';
import {
  AdminRevokeApiTokenDocument,
  AllApiTokensDocument,
  ApiTokensDocument,
  CreateApiTokenDocument,
  RevokeApiTokenDocument,
  ShellDocument,
  type TokenRowFragment as Token,
} from '../generated/documents';
import { permissions } from '../generated/permissions';
import { useAnswer, useChange } from '../ground/answers';
import { useCreating } from '../ground/asked';
import { ConfirmDialog } from '../ground/dialog';
import { FormDialog, linesOf } from '../ground/form';
import { type Pages, usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty } from '../ground/problem';
import { Rows } from '../ground/rows';
import { ShownOnce } from '../ground/shown-once';
import { Time } from '../ground/time';
import { t } from '../texts';
import { Applications, Grants } from './applications';

interface Issued {
  title: string;
  parts: { label: string; text: string }[];
}

/** The programs that act for people: by tokens of their own, or as applications to which people have granted it. */
export function Tokens(): ReactNode {
  const { mayInOrganization } = usePlace();
  const [isCreating, setCreating] = useCreating(mayInOrganization('api_token:create'));
  const [issued, setIssued] = useState<Issued | null>(null);
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.tokens}</h1>
        {mayInOrganization('api_token:create') && (
          <button type="button" className="primary" onClick={() => setCreating(true)}>
            {t.tokens.create}
          </button>
        )}
      </header>
      <Mine />
      {mayInOrganization('api_token:manage') && <Everybodys />}
      {mayInOrganization('application:read') && <Applications />}
      {mayInOrganization('application_grant:read') && <Grants />}
      {isCreating && <NewToken onIssued={setIssued} onClose={() => setCreating(false)} />}
      {issued && !isCreating && <ShownOnce title={issued.title} parts={issued.parts} onClose={() => setIssued(null)} />}
    </>
  );
}

function Mine() {
  const { orgId } = usePlace();
  const list = usePages(ApiTokensDocument, { orgId }, ({ apiTokens }) => apiTokens);
  const [leaving, setLeaving] = useState<Token | null>(null);
  return (
    <section aria-labelledby="mine">
      <h2 id="mine">{t.tokens.mine}</h2>
      <TokenRows
        label={t.tokens.mine}
        list={list}
        empty={<Empty title={t.tokens.none}>{t.tokens.noneHint}</Empty>}
        onRevoke={setLeaving}
      />
      {leaving && <Revoke token={leaving} document={RevokeApiTokenDocument} onClose={() => setLeaving(null)} />}
    </section>
  );
}

function Everybodys() {
  const { orgId } = usePlace();
  const list = usePages(AllApiTokensDocument, { orgId }, ({ allApiTokens }) => allApiTokens);
  const [leaving, setLeaving] = useState<Token | null>(null);
  return (
    <section aria-labelledby="everybody">
      <h2 id="everybody">{t.tokens.everybody}</h2>
      <TokenRows
        label={t.tokens.everybody}
        list={list}
        empty={<p className="quiet">{t.tokens.noneOfAll}</p>}
        onRevoke={setLeaving}
        hasOwner
      />
      {leaving && <Revoke token={leaving} document={AdminRevokeApiTokenDocument} onClose={() => setLeaving(null)} />}
    </section>
  );
}

function TokenRows({
  label,
  list,
  empty,
  onRevoke,
  hasOwner = false,
}: {
  label: string;
  list: Pages<Token> & { more: () => void };
  empty: ReactNode;
  onRevoke: (token: Token) => void;
  hasOwner?: boolean;
}) {
  const owner = { label: t.tokens.owner, cell: (token: Token) => token.app?.name ?? token.createdByUser?.username };
  return (
    <Rows
      label={label}
      list={list}
      idOf={({ id }) => id}
      empty={empty}
      columns={[
        {
          label: t.name,
          cell: ({ name, prefix }) => (
            <>
              {name} <code className="quiet">{prefix}…</code>
            </>
          ),
        },
        ...(hasOwner ? [owner] : []),
        { label: t.tokens.rights, isExtra: true, cell: rightsOf },
        { label: t.tokens.workspaces, isExtra: true, cell: (token) => <Places token={token} /> },
        {
          label: t.tokens.until,
          isExtra: true,
          cell: ({ expiresAt }) => (expiresAt ? <Time at={expiresAt} /> : t.never),
        },
        {
          label: t.tokens.used,
          isExtra: true,
          cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : t.never),
        },
        { label: t.status, cell: (token) => <Status token={token} /> },
        {
          label: '',
          cell: (token) =>
            !token.revokedAt && (
              <button
                type="button"
                className="small danger"
                aria-label={t.tokens.revokeOne(token.name)}
                onClick={() => onRevoke(token)}
              >
                {t.tokens.revoke}
              </button>
            ),
        },
      ]}
    />
  );
}

const rightsOf = ({ scopes, permissions: names }: Token) => [...scopes, ...names].join(', ') || t.tokens.allRights;

/** The workspaces of the organization that the reader sees. */
function useWorkspaces(): readonly { id: string; name: string }[] {
  const { orgId } = usePlace();
  const { data } = useAnswer(ShellDocument, {}, { isFresh: false });
  return data?.me.organizations.nodes.find(({ id }) => id === orgId)?.workspaces.nodes ?? [];
}

/** Ids stand for workspaces that the reader does not see. */
function Places({ token: { workspaceIds } }: { token: Token }) {
  const workspaces = useWorkspaces();
  const names = workspaceIds.map((id) => workspaces.find((one) => one.id === id)?.name ?? id);
  return names.join(', ') || t.tokens.everywhere;
}

function Status({ token: { revokedAt, suspendedAt, expiresAt } }: { token: Token }) {
  if (revokedAt) return <span className="tag bad">{t.tokens.revoked}</span>;
  if (suspendedAt) return <span className="tag warn">{t.tokens.suspended}</span>;
  if (expiresAt && Date.parse(expiresAt) <= Date.now()) return <span className="tag">{t.tokens.over}</span>;
  return <span className="tag ok">{t.tokens.live}</span>;
}

function Revoke({
  token: { id, name },
  document,
  onClose,
}: {
  token: Token;
  document: typeof RevokeApiTokenDocument | typeof AdminRevokeApiTokenDocument;
  onClose: () => void;
}) {
  const { orgId } = usePlace();
  const revoke = useChange<unknown, { orgId: string; id: string }>(document);
  return (
    <ConfirmDialog
      title={t.tokens.revokeOne(name)}
      name={name}
      action={t.tokens.revoke}
      onClose={onClose}
      onConfirm={() => revoke({ orgId, id })}
    >
      <p>{t.tokens.revokeHint}</p>
    </ConfirmDialog>
  );
}

const names = Object.keys(permissions);
const resources = [...new Set(names.map((name) => name.slice(0, name.indexOf(':'))))].sort();
const optionsOf = (list: readonly string[]) => list.map((value) => ({ value, label: value }));
const scopes = optionsOf(['read', 'write', 'admin', ...resources]);
const permissionNames = optionsOf([...names].sort());

const DAYS = '90';

function NewToken({ onIssued, onClose }: { onIssued: (issued: Issued) => void; onClose: () => void }) {
  const { orgId } = usePlace();
  const create = useChange(CreateApiTokenDocument);
  const workspaces = useWorkspaces().map(({ id, name }) => ({ value: id, label: name }));
  return (
    <FormDialog
      title={t.tokens.create}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true },
        {
          name: 'expiresInDays',
          label: t.tokens.days,
          kind: 'number',
          isRequired: true,
          value: DAYS,
          hint: t.tokens.daysHint,
        },
        { name: 'scopes', label: t.tokens.scopes, kind: 'choices', choices: scopes, hint: t.tokens.scopesHint },
        { name: 'permissions', label: t.tokens.permissions, kind: 'choices', choices: permissionNames },
        {
          name: 'workspaceIds',
          label: t.tokens.workspaces,
          kind: 'choices',
          choices: workspaces,
          hint: t.tokens.workspacesHint,
        },
      ]}
      onSave={async (values) => {
        const result = await create({
          orgId,
          input: {
            name: values.name ?? '',
            expiresInDays: Number(values.expiresInDays),
            scopes: linesOf(values.scopes),
            permissions: linesOf(values.permissions),
            workspaceIds: linesOf(values.workspaceIds),
          },
        });
        const made = result.data?.createApiToken;
        if (made)
          onIssued({
            title: t.tokens.tokenOf(made.token.name),
            parts: [
              { label: t.tokens.token, text: made.plaintextToken },
              { label: t.tokens.refreshToken, text: made.refreshTokenPlaintext },
            ],
          });
        return result;
      }}
    />
  );
}
