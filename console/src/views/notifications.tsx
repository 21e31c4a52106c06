import { Link } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react';
import {
  ArchiveNotificationDocument,
  MarkAllReadDocument,
  MarkReadDocument,
  NotificationsDocument,
} from '../generated/documents';
import { useChange } from '../ground/answers';
import { useFilters } from '../ground/filters';
import { usePages } from '../ground/pages';
import { Empty, Loading, Problem } from '../ground/problem';
import { Time } from '../ground/time';
import { t } from '../texts';

const Settings = lazy(() => import('./notification-settings').then(({ Settings: one }) => ({ default: one })));

/** The notifications of the reader, in all organizations. */
export function Notifications(): ReactNode {
  const [{ status: asked }, change] = useFilters<'status'>();
  const status = asked === 'unread' || asked === 'archived' ? asked : null;
  const list = usePages(NotificationsDocument, { ...(status && { status }) }, ({ notifications }) => notifications);
  const read = useChange(MarkReadDocument);
  const archive = useChange(ArchiveNotificationDocument);
  const readAll = useChange(MarkAllReadDocument);
  const [isSetting, setSetting] = useState(false);
  useEffect(() => {
    document.title = `${t.notifications.title} · ${t.console}`;
  }, []);
  return (
    <main id="main" tabIndex={-1} className="narrow">
      <header className="toolbar">
        <h1 className="grow">{t.notifications.title}</h1>
        <select aria-label={t.status} value={status ?? ''} onChange={({ target }) => change({ status: target.value })}>
          <option value="">{t.notifications.inbox}</option>
          <option value="unread">{t.notifications.onlyUnread}</option>
          <option value="archived">{t.notifications.archived}</option>
        </select>
        <button type="button" disabled={list.rows.length === 0} onClick={() => void readAll({})}>
          {t.notifications.readAll}
        </button>
        <button type="button" onClick={() => setSetting(true)}>
          {t.notifications.settings}
        </button>
      </header>
      <Problem error={list.error} />
      {list.isLoading && list.rows.length === 0 && <Loading />}
      {!list.isLoading && list.rows.length === 0 && !list.error && <Empty title={t.notifications.none} />}
      <ul className="plain cards">
        {list.rows.map((row) => (
          <li key={row.id} className={row.status === 'unread' ? 'card unread' : 'card'}>
            <h2>
              {row.orgId && row.workspaceId ? (
                <Link to="/o/$org/w/$ws" params={{ org: row.orgId, ws: row.workspaceId }}>
                  {row.title}
                </Link>
              ) : (
                row.title
              )}
            </h2>
            <p>{row.message}</p>
            <p className="quiet">
              <span className="tag">{t.notifications.categories[row.category]}</span> <Time at={row.createdAt} />{' '}
              {row.resolvedAt && <span className="tag ok">{t.notifications.resolved}</span>}
            </p>
            <p className="actions">
              {row.status === 'unread' && (
                <button
                  type="button"
                  className="small"
                  aria-label={t.notifications.readOne(row.title)}
                  onClick={() => void read({ id: row.id })}
                >
                  {t.notifications.markRead}
                </button>
              )}{' '}
              {row.status !== 'archived' && (
                <button
                  type="button"
                  className="small"
                  aria-label={t.notifications.archiveOne(row.title)}
                  onClick={() => void archive({ id: row.id })}
                >
                  {t.notifications.archive}
                </button>
              )}
            </p>
          </li>
        ))}
      </ul>
      {list.hasMore && (
        <button type="button" onClick={list.more}>
          {t.more}
        </button>
      )}
      {isSetting && (
        <Suspense>
          <Settings onClose={() => setSetting(false)} />
        </Suspense>
      )}
    </main>
  );
}
