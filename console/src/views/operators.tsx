import { type ReactNode, useEffect } from 'react';
import { OperatorsDocument, type OperatorsQuery, ShellDocument } from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { administersPlatform } from '../ground/permissions';
import { Empty, Loading, Problem } from '../ground/problem';
import { count, Time } from '../ground/time';
import { useWhileSeen } from '../ground/while-seen';
import { t } from '../texts';

type Status = OperatorsQuery['serviceStatus'];
type Named<Part extends 'rootKeys' | 'signingKeys' | 'jobs'> = Status[Part][number];

/** The service counts no further. */
const MOST_COUNTED = 10_000;

/** The state of the service, for administrators of the platform. For everybody else there is no such page. */
export function Operators(): ReactNode {
  const { data, error } = useAnswer(ShellDocument, {}, { isFresh: false });
  if (!data) return error ? <Problem error={error} /> : <Loading />;
  return administersPlatform(data.me) ? <State /> : <Empty title={t.notFound} />;
}

function State() {
  const { data, error, again } = useAnswer(OperatorsDocument, {});
  useWhileSeen(again);
  useEffect(() => {
    document.title = `${t.operators.title} · ${t.console}`;
  }, []);
  const status = data?.serviceStatus;
  return (
    <main id="main" tabIndex={-1}>
      <h1>{t.operators.title}</h1>
      <p className="quiet">{t.operators.hint}</p>
      <Problem error={error} />
      {!status && !error && <Loading />}
      {status && (
        <>
          <Nodes status={status} />
          <Jobs jobs={status.jobs} />
          <Events lag={status.eventLag} />
          <Keys status={status} />
        </>
      )}
    </main>
  );
}

const Part = ({ title, hint, children }: { title: string; hint?: string; children: ReactNode }) => (
  <section className="card" aria-label={title}>
    <h2>{title}</h2>
    {hint && <p className="quiet">{hint}</p>}
    {children}
  </section>
);

function Table({ label, heads, children }: { label: string; heads: readonly string[]; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways is reached by keyboard
    <section className="wide-table" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

function Nodes({ status: { nodes, databaseClients } }: { status: Status }) {
  const o = t.operators;
  return (
    <Part title={o.node} hint={o.nodeHint}>
      <Table
        label={`${o.node}: ${o.version}`}
        heads={[o.host, t.status, o.version, o.workers, o.started, o.seen, o.address]}
      >
        {nodes.map((node) => (
          <tr key={node.id}>
            <th scope="row">
              {node.hostName} {node.isAnswering && <span className="tag">{o.answers}</span>}
            </th>
            <td>
              <span className={node.status === 'ready' ? 'tag ok' : 'tag warn'}>{o.states[node.status]}</span>{' '}
              {node.problem}
            </td>
            <td>{node.version}</td>
            <td>{o.workersOf(node.runningWorkerCount, node.workerCount)}</td>
            <td>
              <Time at={node.startedAt} />
            </td>
            <td>
              <Time at={node.lastSeenAt} />
            </td>
            <td>{node.address ?? o.local}</td>
          </tr>
        ))}
      </Table>
      <Table label={`${o.node}: ${o.connections}`} heads={[o.address, o.connections, o.oldest]}>
        {databaseClients.map(({ address, connectionCount, oldestConnectionAt }) => (
          <tr key={address}>
            <th scope="row">{address ?? o.local}</th>
            <td>{count(connectionCount)}</td>
            <td>
              <Time at={oldestConnectionAt} />
            </td>
          </tr>
        ))}
      </Table>
    </Part>
  );
}

const jobsIn = ({ waitingCount, retryingCount, runningCount, failedCount }: Named<'jobs'>): number =>
  waitingCount + retryingCount + runningCount + failedCount;

function Jobs({ jobs }: { jobs: Status['jobs'] }) {
  const o = t.operators;
  const busy = jobs.filter((task) => jobsIn(task) > 0);
  return (
    <Part title={o.jobs} hint={o.jobsHint}>
      {busy.length === 0 ? (
        <p>{o.noJobs}</p>
      ) : (
        <Table label={`${o.jobs}: ${o.task}`} heads={[o.task, o.waiting, o.retrying, o.running, o.failed, o.waits]}>
          {busy.map((task) => (
            <tr key={task.task}>
              <th scope="row">{task.task}</th>
              <td>{count(task.waitingCount)}</td>
              <td>{count(task.retryingCount)}</td>
              <td>{count(task.runningCount)}</td>
              <td>{count(task.failedCount)}</td>
              <td>{task.oldestWaitingSeconds === null ? '–' : t.seconds(task.oldestWaitingSeconds)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Part>
  );
}

const atMost = (value: number): string => (value >= MOST_COUNTED ? `${count(value)}+` : count(value));

function Events({ lag: { waitingCount, lagSeconds } }: { lag: Status['eventLag'] }) {
  const o = t.operators;
  return (
    <Part title={o.events} hint={o.eventsHint}>
      <Table label={`${o.events}: ${o.heldBack}`} heads={[o.heldBack, o.lag]}>
        <tr>
          <td>{atMost(waitingCount)}</td>
          <td>{waitingCount === 0 ? '–' : t.seconds(lagSeconds)}</td>
        </tr>
      </Table>
    </Part>
  );
}

function Keys({ status: { rootKeys, signingKeys } }: { status: Status }) {
  const o = t.operators;
  return (
    <Part title={o.keys}>
      <h3>{o.rootKeys}</h3>
      <Table label={o.rootKeys} heads={[o.key, t.status, o.seals, o.firstUsed]}>
        {rootKeys.map((key) => (
          <tr key={key.id}>
            <th scope="row">
              <code>{key.id}</code>
            </th>
            <td>
              <RootKeyState of={key} />
            </td>
            <td>{atMost(key.sealedCount)}</td>
            <td>
              <Time at={key.createdAt} />
            </td>
          </tr>
        ))}
      </Table>
      <h3>{o.signingKeys}</h3>
      <Table label={o.signingKeys} heads={[o.key, t.status, o.made, o.retired]}>
        {signingKeys.map((key) => (
          <SigningKey key={key.id} of={key} />
        ))}
      </Table>
    </Part>
  );
}

function RootKeyState({ of: { isCurrent, isPresent } }: { of: Named<'rootKeys'> }) {
  if (!isPresent) return <span className="tag bad">{t.operators.missing}</span>;
  if (isCurrent) return <span className="tag ok">{t.operators.current}</span>;
  return <span className="tag">{t.operators.former}</span>;
}

function SigningKey({ of: { id, createdAt, retiredAt } }: { of: Named<'signingKeys'> }) {
  const o = t.operators;
  return (
    <tr>
      <th scope="row">
        <code>{id}</code>
      </th>
      <td>{retiredAt ? <span className="tag">{o.former}</span> : <span className="tag ok">{o.current}</span>}</td>
      <td>{createdAt ? <Time at={createdAt} /> : o.unknown}</td>
      <td>{retiredAt ? <Time at={retiredAt} /> : '–'}</td>
    </tr>
  );
}
