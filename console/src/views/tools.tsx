import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import {
  ConnectionsDocument,
  DeleteConnectionDocument,
  DeleteToolInstanceDocument,
  InitiateConnectionDocument,
  ToggleToolInstanceDocument,
  ToolInstancesDocument,
  type ToolInstancesQuery,
  ToolsDocument,
  type ToolsQuery,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { useCreating } from '../ground/asked';
import { finishLater } from '../ground/connecting';
import { ConfirmDialog, Dialog } from '../ground/dialog';
import { useFilters } from '../ground/filters';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, faultOf, Loading, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { Time } from '../ground/time';
import { useTyped } from '../ground/typed';
import { wordOf } from '../ground/words';
import { locale, t } from '../texts';
import { ConnectionState, ConnectionTag } from './connection-state';
import { signsIn } from './oauth-client';

const forms = () => import('./tool-forms');
const NewInstance = lazy(() => forms().then((module) => ({ default: module.NewInstance })));
const EditInstance = lazy(() => forms().then((module) => ({ default: module.EditInstance })));
const TestInstance = lazy(() => forms().then((module) => ({ default: module.TestInstance })));

type Instance = ToolInstancesQuery['toolInstances']['nodes'][number];
type Tool = ToolsQuery['tools']['nodes'][number];
type Step = { kind: 'edit' | 'test' | 'delete'; instance: Instance };

/** The tools that the workspace uses, and their connections. */
export function Tools(): ReactNode {
  const { orgId, workspaceId, may, me } = usePlace();
  const list = usePages(ToolInstancesDocument, { orgId, workspaceId }, ({ toolInstances }) => toolInstances);
  const toggle = useChange(ToggleToolInstanceDocument);
  const initiate = useChange(InitiateConnectionDocument);
  const [step, setStep] = useState<Step | null>(null);
  const [isAdding, setAdding] = useCreating(may('tool_instance:create'));
  const [problem, setProblem] = useState('');
  const isOwn = ({ createdBy }: { createdBy: string | null }) => ({ isOwn: createdBy === me.id });
  const close = () => setStep(null);
  const connect = async (instance: Instance) => {
    setProblem('');
    if (!instance.connectionCredentials.clientId) {
      if (!may('tool_instance:update', isOwn(instance))) return setProblem(t.tools.clientMissing(instance.name));
      return setStep({ kind: 'edit', instance });
    }
    // opened by the click itself: a browser blocks what opens later
    const opened = window.open('about:blank', '_blank');
    const { data, error } = await initiate({ orgId, workspaceId, input: { toolInstanceId: instance.id } });
    setProblem(error ? faultOf(error).message : '');
    const url = data?.initiateWorkspaceConnection.authorizationUrl;
    if (!opened || !url || !/^https?:/.test(url)) return opened?.close();
    finishLater(url, setProblem);
    opened.opener = null;
    opened.location.href = url;
  };
  const change = async ({ id, isActive }: Instance) => {
    const { error } = await toggle({ orgId, workspaceId, id, isActive: !isActive });
    setProblem(error ? faultOf(error).message : '');
  };
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.tools}</h1>
        {may('tool_instance:create') && (
          <button type="button" className="primary" onClick={() => setAdding(true)}>
            {t.tools.add}
          </button>
        )}
      </header>
      <Problem message={problem} />
      <Rows<Instance>
        label={t.sections.tools}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.tools.none}>{may('tool_instance:create') ? t.tools.noneHint : null}</Empty>}
        columns={[
          {
            label: t.name,
            cell: ({ id, name, tool, isActive }) => (
              <>
                {tool.supportsConnection ? (
                  <Link
                    to="/o/$org/w/$ws/tools/$instance"
                    params={{ org: orgId, ws: workspaceId, instance: id }}
                    title={t.endUsers.of(name)}
                  >
                    {name}
                  </Link>
                ) : (
                  name
                )}{' '}
                {!isActive && <span className="tag">{t.tools.isOff}</span>}
              </>
            ),
          },
          { label: t.tools.tool, isExtra: true, cell: ({ tool }) => tool.name },
          {
            label: t.tools.connection,
            cell: (instance) => <ConnectedBy instance={instance} />,
          },
          {
            label: t.tools.used,
            isExtra: true,
            cell: ({ lastUsedAt }) =>
              lastUsedAt ? <Time at={lastUsedAt} /> : <span className="quiet">{t.never}</span>,
          },
          {
            label: '',
            cell: (instance) => (
              <span className="actions">
                {signsIn(instance.tool) && may('connection:create', isOwn(instance)) && (
                  <button
                    type="button"
                    className="small"
                    aria-label={t.tools.connectOne(instance.name)}
                    onClick={() => void connect(instance)}
                  >
                    {t.tools.connect}
                  </button>
                )}
                {may('tool_instance:execute') && (
                  <button
                    type="button"
                    className="small"
                    aria-label={t.tools.testOne(instance.name)}
                    onClick={() => setStep({ kind: 'test', instance })}
                  >
                    {t.tools.test}
                  </button>
                )}
                {may('tool_instance:update', isOwn(instance)) && (
                  <button
                    type="button"
                    className="small"
                    aria-label={t.tools.configureOne(instance.name)}
                    onClick={() => setStep({ kind: 'edit', instance })}
                  >
                    {t.edit}
                  </button>
                )}
                {may('tool_instance:update', isOwn(instance)) && (
                  <button
                    type="button"
                    className="small"
                    aria-label={instance.isActive ? t.tools.stopOne(instance.name) : t.tools.startOne(instance.name)}
                    onClick={() => void change(instance)}
                  >
                    {instance.isActive ? t.tools.stop : t.tools.start}
                  </button>
                )}
                {may('tool_instance:delete', isOwn(instance)) && (
                  <button
                    type="button"
                    className="small"
                    aria-label={t.tools.deleteOne(instance.name)}
                    onClick={() => setStep({ kind: 'delete', instance })}
                  >
                    {t.delete}
                  </button>
                )}
              </span>
            ),
          },
        ]}
      />
      <Connections />
      {isAdding && <Catalogue onClose={() => setAdding(false)} />}
      <Suspense>
        {step?.kind === 'edit' && <EditInstance id={step.instance.id} name={step.instance.name} onClose={close} />}
        {step?.kind === 'test' && <TestInstance id={step.instance.id} name={step.instance.name} onClose={close} />}
      </Suspense>
      {step?.kind === 'delete' && <DeleteInstance instance={step.instance} onClose={close} />}
    </>
  );
}

/** How an instance gets in at its provider: by a connection, by a key of its own, or without either. */
function ConnectedBy({ instance: { tool, connectionStatus, credentialFields } }: { instance: Instance }) {
  if (signsIn(tool) || (tool.supportsConnection && connectionStatus !== 'not_connected'))
    return <ConnectionTag status={connectionStatus} />;
  if (tool.credentialSchema.length === 0) return <span className="quiet">{t.tools.needsNone}</span>;
  return credentialFields.length > 0 ? (
    <span className="tag ok">{t.tools.hasKey}</span>
  ) : (
    <span className="tag">{t.tools.hasNoKey}</span>
  );
}

function Connections() {
  const { orgId, workspaceId, may, me } = usePlace();
  const list = usePages(ConnectionsDocument, { orgId, workspaceId }, ({ connections }) => connections);
  const remove = useChange(DeleteConnectionDocument);
  const [ending, setEnding] = useState<(typeof list.rows)[number] | null>(null);
  const nameOf = ({ toolInstance, tool }: (typeof list.rows)[number]) => toolInstance?.name ?? tool?.name ?? '';
  return (
    <section aria-labelledby="connections">
      <h2 id="connections">{t.tools.connections}</h2>
      <Rows
        label={t.tools.connections}
        list={list}
        idOf={({ id }) => id}
        empty={<p className="quiet">{t.tools.noConnections}</p>}
        columns={[
          { label: t.name, cell: nameOf },
          { label: t.tools.account, cell: ({ accountLabel }) => accountLabel },
          {
            label: t.status,
            cell: (connection) => <ConnectionState {...connection} />,
          },
          {
            label: '',
            cell: (connection) =>
              may('connection:delete', { isOwn: connection.createdBy === me.id }) && (
                <button
                  type="button"
                  className="small"
                  aria-label={t.tools.disconnectOne(nameOf(connection))}
                  onClick={() => setEnding(connection)}
                >
                  {t.tools.disconnect}
                </button>
              ),
          },
        ]}
      />
      {ending && (
        <ConfirmDialog
          title={t.tools.disconnectOne(nameOf(ending))}
          name={nameOf(ending)}
          action={t.tools.disconnect}
          onClose={() => setEnding(null)}
          onConfirm={() => remove({ orgId, workspaceId, toolInstanceId: ending.toolInstanceId })}
        >
          <p>{t.tools.disconnectHint}</p>
        </ConfirmDialog>
      )}
    </section>
  );
}

/** So many tools are read at once: only a whole list can be sorted. */
const AT_ONCE = 1_000;

/** Tools as readers look for them: those in use first, then by name. */
const inOrder = (tools: readonly Tool[], used: ReadonlySet<string>): Tool[] =>
  [...tools].sort(
    (one, other) =>
      Number(used.has(other.id)) - Number(used.has(one.id)) ||
      one.name.localeCompare(other.name, locale, { sensitivity: 'base', numeric: true }),
  );

/** All tools of the organization, and the form of the one that is chosen. */
function Catalogue({ onClose }: { onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const [{ find: search = '' }, change] = useFilters<'find'>();
  const [chosen, setChosen] = useState<Tool | null>(null);
  const typed = useTyped(search);
  const variables = { orgId, workspaceId, ...(typed && { search: typed }) };
  const list = usePages(ToolsDocument, variables, ({ tools }) => tools, { all: AT_ONCE });
  const instances = usePages(ToolInstancesDocument, { orgId, workspaceId }, ({ toolInstances }) => toolInstances, {
    all: AT_ONCE,
  });
  const used = new Set(instances.rows.map(({ tool }) => tool.id));
  const problem = list.error ?? instances.error;
  const isCutOff = list.hasMore && list.rows.length >= AT_ONCE;
  const isArriving = ({ isLoading, hasMore, rows }: typeof list | typeof instances) =>
    isLoading || (hasMore && rows.length < AT_ONCE);
  const isPartial = !problem && (isArriving(list) || isArriving(instances));
  // a part of a list is not shown while the rest is on its way, and never sorted
  const shown = isPartial ? [] : list.hasMore || list.error ? list.rows : inOrder(list.rows, used);
  const end = () => {
    change({ find: '' });
    onClose();
  };
  if (chosen)
    return (
      <Suspense>
        <NewInstance tool={chosen} onClose={end} />
      </Suspense>
    );
  return (
    <Dialog title={t.tools.add} onClose={end} isWide>
      <label className="field">
        <span>{t.tools.find}</span>
        <input type="search" value={search} onChange={(event) => change({ find: event.target.value })} />
      </label>
      <Problem error={problem} />
      {isPartial && <Loading />}
      {!isPartial && list.rows.length === 0 && !problem && <Empty title={t.nothingFound} />}
      <ul className="plain choices">
        {shown.map((tool) => (
          <li key={tool.id}>
            <button type="button" className="choice" onClick={() => setChosen(tool)}>
              <strong>{tool.name}</strong> <span className="tag">{wordOf(t.tools.categories, tool.category)}</span>{' '}
              {used.has(tool.id) && <span className="tag ok">{t.tools.isUsed}</span>}
              <small className="quiet">{tool.shortDescription ?? tool.description}</small>
            </button>
          </li>
        ))}
      </ul>
      {isCutOff && !isPartial && <p className="quiet">{t.tools.moreThanShown}</p>}
    </Dialog>
  );
}

function DeleteInstance({ instance: { id, name, tool }, onClose }: { instance: Instance; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const remove = useChange(DeleteToolInstanceDocument);
  return (
    <ConfirmDialog
      title={t.tools.deleteOne(name)}
      name={name}
      action={t.delete}
      onClose={onClose}
      onConfirm={() => remove({ orgId, workspaceId, id })}
    >
      <p>{tool.supportsConnection ? t.tools.deleteWithConnection : t.tools.deleteHint}</p>
    </ConfirmDialog>
  );
}
