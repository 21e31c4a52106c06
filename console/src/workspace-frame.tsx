import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';
import { LiveProvider } from './ground/live';
import { type Place, PlaceProvider, usePlace } from './ground/place';
import { t } from './texts';

/** The views of a workspace, beside each other. */
export function WorkspaceFrame(): ReactNode {
  return (
    <PlaceProvider>
      <LiveOfPlace>
        <div className="frame">
          <Sections />
          <main id="main" tabIndex={-1}>
            <Outlet />
          </main>
        </div>
      </LiveOfPlace>
    </PlaceProvider>
  );
}

const sections = [
  ['/o/$org/w/$ws', 'home'],
  ['/o/$org/w/$ws/activity', 'activity'],
  ['/o/$org/w/$ws/analytics', 'analytics'],
  ['/o/$org/w/$ws/secrets', 'secrets'],
  ['/o/$org/w/$ws/environments', 'environments'],
  ['/o/$org/w/$ws/apps', 'apps'],
  ['/o/$org/w/$ws/runs', 'runs'],
  ['/o/$org/w/$ws/tools', 'tools'],
  ['/o/$org/w/$ws/artifacts', 'artifacts'],
  ['/o/$org/w/$ws/graph', 'graph'],
  ['/o/$org/w/$ws/models', 'models'],
  ['/o/$org/w/$ws/people', 'people'],
  ['/o/$org/w/$ws/tokens', 'tokens'],
  ['/o/$org/w/$ws/sign-in', 'sign-in'],
  ['/o/$org/w/$ws/webhooks', 'webhooks'],
] as const;

/** The views that the reader may see, with their paths. */
export function sectionsOf({ may, mayInOrganization }: Place) {
  const isShown: Partial<Record<(typeof sections)[number][1], boolean>> = {
    secrets: may('secret:read'),
    'sign-in': mayInOrganization('identity_provider:read'),
    webhooks: mayInOrganization('webhook:read'),
  };
  return sections.filter(([, name]) => isShown[name] ?? true);
}

/** Where the views are one line that scrolls, the one that is shown is in sight. */
function useShownInSight() {
  const list = useRef<HTMLElement>(null);
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another path is another view
  useEffect(() => {
    const nav = list.current;
    const link = nav?.querySelector<HTMLElement>('[aria-current="page"]');
    if (nav && link) nav.scrollLeft = link.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
  }, [path]);
  return list;
}

function Sections() {
  const place = usePlace();
  const list = useShownInSight();
  const { orgId, workspaceId } = place;
  return (
    <nav ref={list} aria-label={t.sections.title} className="sections">
      {sectionsOf(place).map(([to, name]) => (
        <Link
          key={name}
          to={to}
          params={{ org: orgId, ws: workspaceId }}
          activeOptions={{ exact: name === 'home', includeSearch: false }}
        >
          {t.sections[name]}
        </Link>
      ))}
    </nav>
  );
}

/** Another workspace has other streams: what follows them begins anew. */
function LiveOfPlace({ children }: { children: ReactNode }) {
  const { workspaceId } = usePlace();
  return <LiveProvider key={workspaceId}>{children}</LiveProvider>;
}
