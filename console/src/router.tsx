import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent,
} from '@tanstack/react-router';
import { consolePath } from './ground/address';
import { Empty, Problem } from './ground/problem';
import { Shell } from './shell';
import { t } from './texts';
import { WorkspaceFrame } from './workspace-frame';

const root = createRootRoute({
  validateSearch: ({ do: asked }): { do?: string } => (typeof asked === 'string' && asked ? { do: asked } : {}),
  component: Shell,
  notFoundComponent: () => <Empty title={t.notFound} />,
  errorComponent: ({ error }: ErrorComponentProps) => (
    <Problem message={error instanceof Error ? error.message : String(error)} />
  ),
});

const chooser = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./views/chooser'), 'Chooser'),
});

const notifications = createRoute({
  getParentRoute: () => root,
  path: '/notifications',
  validateSearch: ({ status }): { status?: 'unread' | 'archived' } =>
    status === 'unread' || status === 'archived' ? { status } : {},
  component: lazyRouteComponent(() => import('./views/notifications'), 'Notifications'),
});

const operators = createRoute({
  getParentRoute: () => root,
  path: '/operators',
  component: lazyRouteComponent(() => import('./views/operators'), 'Operators'),
});

const workspace = createRoute({ getParentRoute: () => root, path: '/o/$org/w/$ws', component: WorkspaceFrame });

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** The filters of an address, without what is no filter. */
function filters<Name extends string>(search: Record<string, unknown>, names: readonly Name[]) {
  const given = names.flatMap((name) => {
    const value = text(search[name]);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(given) as Partial<Record<Name, string>>;
}

const routeTree = root.addChildren([
  chooser,
  notifications,
  operators,
  workspace.addChildren([
    createRoute({
      getParentRoute: () => workspace,
      path: '/',
      component: lazyRouteComponent(() => import('./views/home'), 'Home'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/secrets',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['find', 'secret']),
      component: lazyRouteComponent(() => import('./views/secrets'), 'Secrets'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/environments',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['environment']),
      component: lazyRouteComponent(() => import('./views/environments'), 'Environments'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/activity',
      validateSearch: (search: Record<string, unknown>) =>
        filters(search, ['action', 'resource', 'result', 'from', 'to']),
      component: lazyRouteComponent(() => import('./views/activity'), 'ActivityView'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/people',
      component: lazyRouteComponent(() => import('./views/people'), 'People'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/models',
      component: lazyRouteComponent(() => import('./views/models'), 'Models'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/tokens',
      component: lazyRouteComponent(() => import('./views/tokens'), 'Tokens'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/sign-in',
      component: lazyRouteComponent(() => import('./views/sign-in'), 'SignIn'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/webhooks',
      component: lazyRouteComponent(() => import('./views/webhooks'), 'Webhooks'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/tools',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['find']),
      component: lazyRouteComponent(() => import('./views/tools'), 'Tools'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/tools/$instance',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['status']),
      component: lazyRouteComponent(() => import('./views/end-users'), 'EndUsers'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/artifacts',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['namespace', 'find', 'artifact']),
      component: lazyRouteComponent(() => import('./views/artifacts'), 'Artifacts'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/graph',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['app', 'namespace', 'entity']),
      component: lazyRouteComponent(() => import('./views/graph'), 'Graph'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/apps',
      component: lazyRouteComponent(() => import('./views/apps'), 'Apps'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/apps/$app',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['status', 'run', 'from', 'to']),
      component: lazyRouteComponent(() => import('./views/app'), 'AppView'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/runs',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['status', 'run', 'from', 'to']),
      component: lazyRouteComponent(() => import('./views/executions'), 'Runs'),
    }),
    createRoute({
      getParentRoute: () => workspace,
      path: '/analytics',
      validateSearch: (search: Record<string, unknown>) => filters(search, ['span', 'metric', 'compare', 'app']),
      component: lazyRouteComponent(() => import('./views/analytics'), 'Analytics'),
    }),
  ]),
]);

export const router = createRouter({
  routeTree,
  basepath: consolePath,
  defaultPreload: 'intent',
  // ids are texts, also where they look like numbers
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: (search) => {
    const given = Object.entries(search).flatMap(([name, value]) => (text(value) ? [[name, String(value)]] : []));
    const query = new URLSearchParams(given).toString();
    return query ? `?${query}` : '';
  },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
