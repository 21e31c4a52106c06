import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import { NotificationChangesDocument, ShellDocument, type ShellQuery } from './generated/documents';
import { serviceUrl } from './ground/address';
import { useAnswer, useStream } from './ground/answers';
import { ConfirmAddress } from './ground/confirm-address';
import { useNames } from './ground/filters';
import { administersPlatform } from './ground/permissions';
import { Loading, Problem } from './ground/problem';
import { useIsOld } from './ground/read-when-back';
import { useSignOut } from './ground/sign-out';
import { useStreamState } from './ground/stream-state';
import { applyTheme, nextTheme, useTheme } from './ground/theme';
import { setTimeZone } from './ground/time';
import { chooseLanguage, type Language, language, languages, t } from './texts';

const Palette = lazy(() => import('./views/palette').then(({ Palette: component }) => ({ default: component })));

/** What is around every view: where one is, who one is, and the way elsewhere. */
export function Shell(): ReactNode {
  const { data, error } = useAnswer(ShellDocument, {}, { isFresh: false });
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setPaletteOpen(true);
    };
    addEventListener('keydown', open);
    return () => removeEventListener('keydown', open);
  }, []);
  useFocusAfterNavigation();
  if (error && !data)
    return (
      <main className="narrow">
        <Problem error={error} />
        <p>
          <button type="button" onClick={() => location.reload()}>
            {t.problem.again}
          </button>
        </p>
      </main>
    );
  if (!data) return <Loading />;
  setTimeZone(data.me.timezone);
  return (
    <>
      <a className="skip" href="#main">
        {t.skip}
      </a>
      <header className="top">
        <Link to="/" className="brand">
          {t.console}
        </Link>
        <WorkspaceSwitch me={data.me} />
        <button type="button" className="find" onClick={() => setPaletteOpen(true)}>
          {t.palette.open} <kbd>{navigator.userAgent.includes('Mac') ? '⌘K' : 'Ctrl K'}</kbd>
        </button>
        <Account me={data.me} unread={data.unreadNotifications.unreadCount} />
      </header>
      <Outlet />
      {isPaletteOpen && (
        <Suspense>
          <Palette me={data.me} onClose={() => setPaletteOpen(false)} />
        </Suspense>
      )}
      <StreamLine />
    </>
  );
}

/** A new view begins at its heading, also for whoever does not see it. */
function useFocusAfterNavigation() {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const former = useRef(path);
  useEffect(() => {
    if (former.current === path) return;
    former.current = path;
    document.getElementById('main')?.focus();
  }, [path]);
}

function WorkspaceSwitch({ me }: { me: ShellQuery['me'] }) {
  const { org, ws } = useNames();
  if (!org || !ws) return <span className="grow" />;
  const organization = me.organizations.nodes.find(({ id }) => id === org);
  const workspace = organization?.workspaces.nodes.find(({ id }) => id === ws);
  return (
    <Link to="/" className="where grow" title={t.chooser.other}>
      <span className="quiet">{organization?.name}</span> / <strong>{workspace?.name ?? ws}</strong>
    </Link>
  );
}

function Account({ me, unread }: { me: ShellQuery['me']; unread: number }) {
  const signOut = useSignOut();
  const chosen = useTheme();
  useStream(NotificationChangesDocument, {});
  return (
    <nav aria-label={t.account.title} className="account">
      <Link to="/notifications" className="badge" aria-label={t.notifications.unread(unread)}>
        <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
          <path
            d="M10 2a5 5 0 0 0-5 5v3l-2 4h14l-2-4V7a5 5 0 0 0-5-5Zm-2 13a2 2 0 0 0 4 0"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.6"
            strokeLinejoin="round"
          />
        </svg>
        {unread > 0 && <span className="count">{unread}</span>}
      </Link>
      <details>
        <summary>{me.username}</summary>
        <div className="menu">
          <p className="quiet">{me.email}</p>
          {!me.isVerified && <ConfirmAddress />}
          {administersPlatform(me) && <Link to="/operators">{t.operators.title}</Link>}
          <a href={new URL('account', serviceUrl).href}>{t.account.sessions}</a>
          <a href={new URL('docs/', serviceUrl).href}>{t.account.docs}</a>
          <button type="button" onClick={() => applyTheme(nextTheme())}>
            {t.account.theme(t.account.themes[chosen])}
          </button>
          {(Object.keys(languages) as Language[])
            .filter((name) => name !== language)
            .map((name) => (
              <button key={name} type="button" lang={name} onClick={() => chooseLanguage(name)}>
                {languages[name]}
              </button>
            ))}
          <button type="button" onClick={() => void signOut()}>
            {t.account.signOut}
          </button>
        </div>
      </details>
    </nav>
  );
}

/** Says when what is shown may be old. */
function StreamLine() {
  const isAway = useStreamState() === 'away';
  const isOld = useIsOld();
  const said = isAway ? t.streamAway : isOld && t.maybeOld;
  return (
    <p role="status" className="stream" hidden={!said}>
      {said}
    </p>
  );
}
