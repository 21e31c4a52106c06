import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { type ActivityRowFragment, WorkspaceActivityDocument } from '../generated/documents';
import { permissions } from '../generated/permissions';
import { Dialog } from '../ground/dialog';
import { useFilters } from '../ground/filters';
import { useAfterEvents } from '../ground/live';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { CopyButton, Empty } from '../ground/problem';
import { Rows } from '../ground/rows';
import { Time, timeZone } from '../ground/time';
import { TimeFields, timeIn } from '../ground/time-filters';
import { kindOf } from '../ground/words';
import { locale, t } from '../texts';
import { actorOf, didOf, Outcome, reasonOf, subjectOf, verbOf } from './activity-row';

type Filter = 'action' | 'resource' | 'result' | 'from' | 'to' | 'reads';

/** What is no change: left out, unless it is asked for. */
const READS = new Set(['read', 'list', 'view']);

const resources = [...new Set(Object.keys(permissions).map((name) => name.split(':')[0]!))].sort((one, other) =>
  kindOf(one).localeCompare(kindOf(other), locale),
);

/** Actions to choose, with the one of an address that somebody else has written. */
const actionsWith = (chosen: string | undefined): string[] => {
  const known = Object.keys(t.activity.verbs);
  return [...known, ...(chosen && !known.includes(chosen) ? [chosen] : [])].sort((one, other) =>
    verbOf(one).localeCompare(verbOf(other), locale),
  );
};

/** A field of a table for programs: quoted, and never a formula. */
const csvOf = (text: string) => `"${(/^[=+\-@\t]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;

function download(records: readonly ActivityRowFragment[]): void {
  const head = ['time', 'actor', 'action', 'subject', 'success', 'status', 'trace id'];
  const lines = records.map((record) => [
    record.timestamp,
    actorOf(record),
    record.action,
    subjectOf(record),
    String(record.success),
    String(record.statusCode),
    record.traceId ?? '',
  ]);
  const text = [head, ...lines].map((line) => line.map(csvOf).join(',')).join('\r\n');
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: 'activity.csv' });
  link.click();
  URL.revokeObjectURL(url);
}

/** What happened in a workspace. The filters are in the address, so that they can be passed on. */
export function ActivityView(): ReactNode {
  const { orgId, workspaceId } = usePlace();
  const [filters, change] = useFilters<Filter>();
  const [open, setOpen] = useState<ActivityRowFragment | null>(null);
  const [turn, setTurn] = useState(0);
  const [isStale, setStale] = useState(false);
  useAfterEvents(() => setStale(true));
  const { action, resource, result, from, to, reads } = filters;
  const withReads = reads === 'shown' || READS.has(action ?? '');
  const [startTime, endTime] = [timeIn(from), timeIn(to)];
  const variables = {
    orgId,
    workspaceId,
    ...(action && { action }),
    ...(resource && { resourceType: resource }),
    ...(result && { success: result === 'done' }),
    ...(startTime && { startTime }),
    ...(endTime && { endTime }),
    ...(!withReads && { withoutReads: true }),
  };
  const list = usePages(WorkspaceActivityDocument, variables, ({ workspaceActivity }) => workspaceActivity, {
    turn,
    isFinal: true,
  });
  const set = (name: Filter, value: string) => change({ [name]: value });
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.activity}</h1>
        {isStale && (
          <button
            type="button"
            onClick={() => {
              setStale(false);
              setTurn(turn + 1);
            }}
          >
            {t.activity.showNew}
          </button>
        )}
        <button type="button" disabled={list.rows.length === 0} onClick={() => download(list.rows)}>
          {t.activity.export}
        </button>
      </header>
      <form className="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          {t.activity.resource}
          <select value={resource ?? ''} onChange={(event) => set('resource', event.target.value)}>
            <option value="">{t.all}</option>
            {resources.map((name) => (
              <option key={name} value={name}>
                {kindOf(name)}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t.activity.action}
          <select value={action ?? ''} onChange={(event) => set('action', event.target.value)}>
            <option value="">{t.all}</option>
            {actionsWith(action).map((name) => (
              <option key={name} value={name}>
                {verbOf(name)}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t.activity.result}
          <select value={result ?? ''} onChange={(event) => set('result', event.target.value)}>
            <option value="">{t.all}</option>
            <option value="done">{t.activity.done}</option>
            <option value="failed">{t.activity.failed}</option>
          </select>
        </label>
        <TimeFields filter={{ from, to }} onChange={change} />
        <label className="check">
          <input
            type="checkbox"
            checked={withReads}
            disabled={READS.has(action ?? '')}
            onChange={(event) => set('reads', event.target.checked ? 'shown' : '')}
          />
          {t.activity.withReads}
        </label>
      </form>
      <p className="quiet">{t.analytics.zone(timeZone())}</p>
      {result === 'failed' && (
        <p>
          {t.activity.failedRuns}{' '}
          <Link to="/o/$org/w/$ws/runs" params={{ org: orgId, ws: workspaceId }} search={{ status: 'failed' }}>
            {t.home.failedRuns}
          </Link>
        </p>
      )}
      <Rows
        label={t.sections.activity}
        list={list}
        idOf={({ id }) => id}
        empty={<Empty title={t.activity.none} />}
        columns={[
          { label: t.when, cell: ({ timestamp }) => <Time at={timestamp} /> },
          { label: t.who, cell: actorOf },
          {
            label: t.activity.what,
            cell: (record) => (
              <button type="button" className="plain link" onClick={() => setOpen(record)}>
                {didOf(record)}
              </button>
            ),
          },
          { label: t.activity.result, cell: (record) => <Outcome record={record} /> },
        ]}
      />
      {open && <RecordDialog record={open} onClose={() => setOpen(null)} />}
    </>
  );
}

function RecordDialog({ record, onClose }: { record: ActivityRowFragment; onClose: () => void }) {
  const { orgId: org, workspaceId: ws } = usePlace();
  const { metadata, traceId, method, path, durationMs, timestamp, resourceType, resourceId } = record;
  const reason = reasonOf(record);
  return (
    <Dialog title={didOf(record)} onClose={onClose} isWide>
      <dl className="facts">
        <div>
          <dt>{t.who}</dt>
          <dd>{actorOf(record)}</dd>
        </div>
        <div>
          <dt>{t.when}</dt>
          <dd>
            <Time at={timestamp} />
          </dd>
        </div>
        <div>
          <dt>{t.activity.result}</dt>
          <dd>
            <Outcome record={record} />
          </dd>
        </div>
        {reason && (
          <div>
            <dt>{t.activity.reason}</dt>
            <dd>{reason}</dd>
          </div>
        )}
        {path && (
          <div>
            <dt>{t.activity.request}</dt>
            <dd>
              <code>
                {method} {path}
              </code>{' '}
              {durationMs} ms
            </dd>
          </div>
        )}
      </dl>
      {resourceType === 'execution' && resourceId && (
        <p>
          <Link to="/o/$org/w/$ws/runs" params={{ org, ws }} search={{ run: resourceId }}>
            {t.activity.openRun}
          </Link>
        </p>
      )}
      {Object.keys(metadata).length > 0 && (
        <>
          <h3>{t.activity.changed}</h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
          <pre tabIndex={0}>{JSON.stringify(metadata, null, 2)}</pre>
        </>
      )}
      {traceId && <CopyButton text={traceId} label={t.problem.trace(traceId)} />}
    </Dialog>
  );
}
