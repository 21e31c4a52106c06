import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import {
  CreateConnectLinkDocument,
  DeleteEndUserConnectionDocument,
  EndUserConnectionsDocument,
  type EndUserConnectionsQuery,
  EndUserInstanceDocument,
  type EndUserInstanceQuery,
  SetReturnAddressesDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { useCreating } from '../ground/asked';
import { askPastCache } from '../ground/client';
import { ConfirmDialog } from '../ground/dialog';
import { useFilters, useNames } from '../ground/filters';
import { FormDialog, linesOf } from '../ground/form';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, Loading, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { ShownOnce } from '../ground/shown-once';
import { Time } from '../ground/time';
import { t } from '../texts';
import { ConnectionState } from './connection-state';

type Instance = EndUserInstanceQuery['toolInstance'];
type Connection = EndUserConnectionsQuery['endUserConnections']['nodes'][number];

/** What a connection of an end user can be: it is there once they have connected. */
const statuses = ['connected', 'needs_reauth', 'expired', 'error'] as const;

/** The end users of an app who have connected accounts to a tool, and where their browsers may go back to. */
export function EndUsers(): ReactNode {
  const { orgId, workspaceId, may, me } = usePlace();
  const { instance: id = '' } = useNames();
  const { data, error } = useAnswer(EndUserInstanceDocument, { orgId, workspaceId, id });
  const instance = data?.toolInstance;
  const isOwn = instance?.createdBy === me.id;
  const mayLink = instance?.tool.supportsConnection === true && may('connection:create', { isOwn });
  const [isLinking, setLinking] = useCreating(mayLink);
  const [link, setLink] = useState<{ endUserId: string; url: string } | null>(null);
  if (error && !instance) return <Problem error={error} />;
  if (!instance) return <Loading />;
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">
          <Link to="/o/$org/w/$ws/tools" params={{ org: orgId, ws: workspaceId }}>
            {t.sections.tools}
          </Link>{' '}
          / {instance.name}
        </h1>
        {mayLink && (
          <button type="button" className="primary" onClick={() => setLinking(true)}>
            {t.endUsers.create}
          </button>
        )}
      </header>
      <p className="quiet">{instance.isActive ? t.endUsers.hint : t.endUsers.isOff}</p>
      <Connections instance={instance} />
      <ReturnAddresses instance={instance} mayChange={may('tool_instance:update', { isOwn })} />
      {isLinking && <NewLink instance={instance} onMade={setLink} onClose={() => setLinking(false)} />}
      {link && (
        <ShownOnce
          title={t.endUsers.linkOf(link.endUserId)}
          parts={[{ label: t.endUsers.link, text: link.url }]}
          onClose={() => setLink(null)}
        />
      )}
    </>
  );
}

/** Whom the app means: their name, or what the app calls them. */
const nameOf = ({ endUserName, endUserEmail }: Connection) => [endUserName, endUserEmail].filter(Boolean).join(', ');

function Connections({ instance }: { instance: Instance }) {
  const { orgId, workspaceId, may, me } = usePlace();
  const [filters, change] = useFilters<'status'>();
  const status = statuses.find((word) => word === filters.status);
  const variables = { orgId, workspaceId, toolInstanceId: instance.id, ...(status && { status }) };
  const list = usePages(EndUserConnectionsDocument, variables, ({ endUserConnections }) => endUserConnections);
  const [leaving, setLeaving] = useState<Connection | null>(null);
  return (
    <section aria-labelledby="end-users">
      <header className="toolbar">
        <h2 id="end-users" className="grow">
          {t.endUsers.title}
        </h2>
        <select aria-label={t.status} value={status ?? ''} onChange={(event) => change({ status: event.target.value })}>
          <option value="">{t.all}</option>
          {statuses.map((word) => (
            <option key={word} value={word}>
              {t.tools.status[word]}
            </option>
          ))}
        </select>
      </header>
      <Rows<Connection>
        label={t.endUsers.title}
        list={list}
        idOf={({ id }) => id}
        empty={status ? <p className="quiet">{t.nothingFound}</p> : <Empty title={t.endUsers.none} />}
        columns={[
          {
            label: t.endUsers.one,
            cell: (connection) => (
              <>
                <code>{connection.endUserId}</code> <small className="quiet">{nameOf(connection)}</small>
              </>
            ),
          },
          { label: t.tools.account, isExtra: true, cell: ({ accountLabel }) => accountLabel },
          {
            label: t.status,
            cell: (connection) => <ConnectionState {...connection} />,
          },
          { label: t.when, isExtra: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            label: '',
            cell: (connection) =>
              may('connection:delete', { isOwn: connection.createdBy === me.id }) && (
                <button
                  type="button"
                  className="small"
                  aria-label={t.endUsers.deleteOne(connection.endUserId ?? '')}
                  onClick={() => setLeaving(connection)}
                >
                  {t.delete}
                </button>
              ),
          },
        ]}
      />
      {leaving && <DeleteConnection connection={leaving} onClose={() => setLeaving(null)} />}
    </section>
  );
}

function DeleteConnection({ connection, onClose }: { connection: Connection; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const remove = useChange(DeleteEndUserConnectionDocument);
  const name = connection.endUserId ?? '';
  return (
    <ConfirmDialog
      title={t.endUsers.deleteOne(name)}
      name={name}
      action={t.delete}
      onClose={onClose}
      onConfirm={() => remove({ orgId, workspaceId, id: connection.id })}
    >
      <p>{t.endUsers.deleteHint}</p>
    </ConfirmDialog>
  );
}

function NewLink({
  instance: { id, returnAddresses },
  onMade,
  onClose,
}: {
  instance: Instance;
  onMade: (link: { endUserId: string; url: string }) => void;
  onClose: () => void;
}) {
  const { orgId, workspaceId } = usePlace();
  const create = useChange(CreateConnectLinkDocument);
  return (
    <FormDialog
      title={t.endUsers.create}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'endUserId', label: t.endUsers.one, isRequired: true, hint: t.endUsers.idHint },
        { name: 'name', label: t.name, hint: t.endUsers.nameHint },
        { name: 'email', label: t.endUsers.email },
        {
          name: 'returnTo',
          label: t.endUsers.returnTo,
          kind: 'choice',
          choices: returnAddresses.map((address) => ({ value: address, label: address })),
          hint: t.endUsers.returnToHint,
        },
      ]}
      onSave={async ({ endUserId = '', name, email, returnTo }) => {
        const input = { endUserId, ...(name && { name }), ...(email && { email }), ...(returnTo && { returnTo }) };
        const { data, error } = await create({ orgId, workspaceId, id, input });
        if (data) onMade(data.createConnectLink);
        return { error };
      }}
    >
      <p>{t.endUsers.createHint}</p>
    </FormDialog>
  );
}

function ReturnAddresses({ instance, mayChange }: { instance: Instance; mayChange: boolean }) {
  const [isChanging, setChanging] = useState(false);
  const { returnAddresses } = instance;
  return (
    <section aria-labelledby="return-addresses" className="card">
      <header className="toolbar">
        <h2 id="return-addresses" className="grow">
          {t.endUsers.returnAddresses}
        </h2>
        {mayChange && (
          <button type="button" aria-label={t.endUsers.changeAddresses} onClick={() => setChanging(true)}>
            {t.edit}
          </button>
        )}
      </header>
      {returnAddresses.length === 0 && <p className="quiet">{t.endUsers.noAddresses}</p>}
      <ul className="plain">
        {returnAddresses.map((address) => (
          <li key={address}>
            <code>{address}</code>
          </li>
        ))}
      </ul>
      {isChanging && <ChangeAddresses instance={instance} onClose={() => setChanging(false)} />}
    </section>
  );
}

function ChangeAddresses({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const set = useChange(SetReturnAddressesDocument);
  const { id, returnAddresses } = instance;
  const [version, setVersion] = useState(instance.resourceVersion);
  const latest = async () => {
    const { data } = await askPastCache(EndUserInstanceDocument, { orgId, workspaceId, id });
    if (!data) return null;
    setVersion(data.toolInstance.resourceVersion);
    return { addresses: data.toolInstance.returnAddresses.join('\n') };
  };
  return (
    <FormDialog
      title={t.endUsers.changeAddresses}
      action={t.save}
      onClose={onClose}
      conflictOf={latest}
      fields={[
        {
          name: 'addresses',
          label: t.endUsers.returnAddresses,
          kind: 'lines',
          hint: t.endUsers.addressesHint,
          value: returnAddresses.join('\n'),
        },
      ]}
      onSave={({ addresses }) =>
        set({ orgId, workspaceId, id, input: { addresses: linesOf(addresses) }, expectedVersion: version })
      }
    />
  );
}
