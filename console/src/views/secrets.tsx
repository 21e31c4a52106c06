import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import {
  CreateSecretDocument,
  EnvironmentNamesDocument,
  type SecretCellFragment,
  SecretsDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { useCreating } from '../ground/asked';
import { useFilters } from '../ground/filters';
import { FormDialog } from '../ground/form';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, Loading, Problem } from '../ground/problem';
import { t } from '../texts';
import { SecretPanel } from './secret-panel';
import { PasteDialog } from './secret-paste';
import { asValue, type Column, placeOf } from './secret-values';

/** A comparison needs all secrets: so many are read at once, and more on demand. */
const AT_ONCE = 2_000;
const LINE = 44;

const columnOf = ({ scope, environmentId }: SecretCellFragment): string | null =>
  scope === 'environment' ? environmentId : scope === 'workspace' ? 'workspace' : null;

type Row = { name: string; cells: Map<string, SecretCellFragment>; elsewhere: SecretCellFragment[] };

function rowsOf(secrets: readonly SecretCellFragment[], find: string): Row[] {
  const rows = new Map<string, Row>();
  for (const secret of secrets) {
    if (find && !secret.name.toLowerCase().includes(find.toLowerCase())) continue;
    const row: Row = rows.get(secret.name) ?? { name: secret.name, cells: new Map(), elsewhere: [] };
    rows.set(secret.name, row);
    const column = columnOf(secret);
    if (column) row.cells.set(column, secret);
    else row.elsewhere.push(secret);
  }
  return [...rows.values()].sort((a, b) => a.name.localeCompare(b.name));
}

/** The secrets of a workspace: a row for each name, a column for each environment. */
export function Secrets(): ReactNode {
  const { orgId, workspaceId, may } = usePlace();
  const [{ find = '', secret: openId }, change] = useFilters<'find' | 'secret'>();
  const [place, setPlace] = useState('workspace');
  const [isCreating, setCreating] = useCreating(may('secret:create'));
  const [isPasting, setPasting] = useState(false);
  const list = usePages(SecretsDocument, { orgId, workspaceId }, ({ secrets }) => secrets, { all: AT_ONCE });
  const { data } = useAnswer(EnvironmentNamesDocument, { orgId, workspaceId });
  if (!may('secret:read')) return <Empty title={t.secrets.forbidden} />;
  const columns: Column[] = [
    { id: 'workspace', label: t.secrets.workspace },
    ...(data?.environments.nodes.map(({ id, name }) => ({ id, label: name })) ?? []),
  ];
  const rows = rowsOf(list.rows, find);
  const createIn = (where: string) => {
    setPlace(where);
    setCreating(true);
  };
  const endCreating = () => {
    setPlace('workspace');
    setCreating(false);
  };
  const open = (secret?: string) => change({ secret: secret ?? '' });
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.secrets}</h1>
        <input
          type="search"
          aria-label={t.secrets.find}
          placeholder={t.secrets.find}
          value={find}
          onChange={(event) => change({ find: event.target.value })}
        />
        {may('secret:create') && (
          <>
            <button type="button" onClick={() => setPasting(true)}>
              {t.secrets.paste}
            </button>
            <button type="button" className="primary" onClick={() => createIn('workspace')}>
              {t.secrets.create}
            </button>
          </>
        )}
      </header>
      <Problem error={list.error} />
      {list.isLoading && list.rows.length === 0 && !list.error && <Loading />}
      {!list.isLoading && list.rows.length === 0 && !list.error && (
        <Empty title={t.secrets.none}>{may('secret:create') ? t.secrets.noneHint : null}</Empty>
      )}
      {list.rows.length > 0 && rows.length === 0 && <Empty title={t.nothingFound} />}
      {rows.length > 0 && <Matrix rows={rows} columns={columns} onOpen={open} onCreate={createIn} />}
      {list.hasMore && list.rows.length >= AT_ONCE && (
        <p>
          {t.secrets.first(list.rows.length)}{' '}
          <button type="button" onClick={list.more}>
            {t.more}
          </button>
        </p>
      )}
      {isCreating && <NewSecret columns={columns} where={place} onClose={endCreating} />}
      {isPasting && <PasteDialog columns={columns} secrets={list.rows} onClose={() => setPasting(false)} />}
      {openId && <SecretPanel id={openId} onClose={() => open()} />}
    </>
  );
}

function Matrix({
  rows,
  columns,
  onOpen,
  onCreate,
}: {
  rows: readonly Row[];
  columns: readonly Column[];
  onOpen: (id: string) => void;
  onCreate: (where: string) => void;
}) {
  const { may } = usePlace();
  const place = useRef<HTMLTableSectionElement>(null);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => LINE,
    overscan: 15,
    scrollMargin: place.current?.offsetTop ?? 0,
  });
  useEffect(() => virtual.measure(), [virtual]);
  const shown = virtual.getVirtualItems();
  const before = shown[0] ? shown[0].start - virtual.options.scrollMargin : 0;
  const after = virtual.getTotalSize() - ((shown.at(-1)?.end ?? 0) - virtual.options.scrollMargin);
  const isElsewhere = rows.some(({ elsewhere }) => elsewhere.length > 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached by keyboard
    <section className="wide-table" tabIndex={0} aria-label={t.sections.secrets}>
      <table className="matrix" aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            <th scope="col">{t.name}</th>
            {columns.map(({ id, label }) => (
              <th scope="col" key={id}>
                {label}
              </th>
            ))}
            {isElsewhere && <th scope="col">{t.secrets.namespaces}</th>}
          </tr>
        </thead>
        <tbody ref={place}>
          {before > 0 && <tr style={{ height: before }} />}
          {shown.map(({ index }) => {
            const { name, cells, elsewhere } = rows[index]!;
            return (
              <tr key={name} aria-rowindex={index + 2}>
                <th scope="row">{name}</th>
                {columns.map(({ id, label }) => (
                  <td key={id}>
                    <Cell
                      secret={cells.get(id)}
                      name={name}
                      where={label}
                      onOpen={onOpen}
                      onCreate={may('secret:create') ? () => onCreate(`${id} ${name}`) : undefined}
                    />
                  </td>
                ))}
                {isElsewhere && (
                  <td>
                    {elsewhere.map((secret) => (
                      <Cell key={secret.id} secret={secret} name={name} where={t.secrets.namespaces} onOpen={onOpen} />
                    ))}
                  </td>
                )}
              </tr>
            );
          })}
          {after > 0 && <tr style={{ height: after }} />}
        </tbody>
      </table>
    </section>
  );
}

function Cell({
  secret,
  name,
  where,
  onOpen,
  onCreate,
}: {
  secret: SecretCellFragment | undefined;
  name: string;
  where: string;
  onOpen: (id: string) => void;
  onCreate?: (() => void) | undefined;
}) {
  if (!secret)
    return onCreate ? (
      <button type="button" className="plain missing" aria-label={t.secrets.addTo(name, where)} onClick={onCreate}>
        +
      </button>
    ) : (
      <span className="quiet">{t.secrets.missing}</span>
    );
  const { id, vaultVersion, isExpired, needsRotation, status } = secret;
  return (
    <button type="button" className="plain cell" onClick={() => onOpen(id)}>
      <span className="unseen">{t.secrets.open(name, where)}</span>
      <span aria-hidden="true">••••</span> <small className="quiet">v{vaultVersion}</small>{' '}
      {status === 'disabled' && <span className="tag warn">{t.secrets.disabled}</span>}
      {isExpired && <span className="tag bad">{t.secrets.expired}</span>}
      {needsRotation && <span className="tag warn">{t.secrets.needsRotation}</span>}
    </button>
  );
}

function NewSecret({ columns, where, onClose }: { columns: readonly Column[]; where: string; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const create = useChange(CreateSecretDocument);
  const [column = 'workspace', name = ''] = where.split(' ');
  return (
    <FormDialog
      title={t.secrets.create}
      action={t.create}
      onClose={onClose}
      fields={[
        { name: 'name', label: t.name, isRequired: true, value: name },
        {
          name: 'where',
          label: t.secrets.where,
          kind: 'choice',
          isRequired: true,
          value: column,
          choices: columns.map(({ id, label }) => ({ value: id, label })),
        },
        {
          name: 'secretType',
          label: t.secrets.type,
          kind: 'choice',
          isRequired: true,
          choices: Object.entries(t.secrets.types).map(([value, label]) => ({ value, label })),
        },
        {
          name: 'value',
          label: t.secrets.value,
          kind: 'lines',
          isRequired: true,
          isSecret: true,
          hint: t.secrets.valueHint,
        },
        { name: 'description', label: t.description },
        { name: 'expiresAt', label: t.secrets.expiresAt, kind: 'date' },
        { name: 'rotationReminderDays', label: t.secrets.reminder, kind: 'number' },
      ]}
      onSave={(values) =>
        create({
          orgId,
          input: {
            ...placeOf(workspaceId, values.where ?? 'workspace'),
            name: values.name ?? '',
            secretType: values.secretType ?? 'token',
            value: asValue(values.value ?? ''),
            ...(values.description && { description: values.description }),
            ...(values.expiresAt && { expiresAt: new Date(values.expiresAt).toISOString() }),
            ...(values.rotationReminderDays && { rotationReminderDays: Number(values.rotationReminderDays) }),
          },
        })
      }
    />
  );
}
