import type { useNavigate } from '@tanstack/react-router';
import type { PaletteNamesQuery, ShellQuery } from '../generated/documents';
import { serviceUrl } from '../ground/address';
import { CREATE } from '../ground/asked';
import { administersPlatform, atLeast } from '../ground/permissions';
import type { Place } from '../ground/place';
import { applyTheme, type Theme, themes } from '../ground/theme';
import { chooseLanguage, type Language, language, languages, t } from '../texts';
import { sectionsOf } from '../workspace-frame';

/** What the palette can choose: something to open, or something to do. */
export interface Entry {
  key: string;
  kind: string;
  label: string;
  go: () => unknown;
}

export type Navigate = ReturnType<typeof useNavigate>;

/** Dialogs that create something, by the view that has them. */
type Creating = 'secrets' | 'environments' | 'apps' | 'tools' | 'people' | 'tokens' | 'webhooks';

const creations = ({ may, mayInOrganization, roles }: Place): [Creating, string, boolean][] => [
  ['secrets', t.secrets.create, may('secret:create')],
  ['people', t.people.invite, atLeast(roles.organization, 'admin')],
  ['environments', t.environments.create, may('environment:create')],
  ['apps', t.recipes.choose, may('recipe:apply')],
  ['tools', t.tools.add, may('tool_instance:create')],
  ['tokens', t.tokens.create, mayInOrganization('api_token:create')],
  ['webhooks', t.webhooks.create, mayInOrganization('webhook:create')],
];

/** The views of a workspace, and what the reader may create there. */
export function entriesIn(place: Place, navigate: Navigate): Entry[] {
  const params = { org: place.orgId, ws: place.workspaceId };
  return [
    ...sectionsOf(place).map(([to, name]) => ({
      key: name,
      kind: t.palette.view,
      label: t.sections[name],
      go: () => navigate({ to, params }),
    })),
    ...creations(place)
      .filter(([, , isAllowed]) => isAllowed)
      .map(([view, label]) => ({
        key: `create-${view}`,
        kind: t.palette.action,
        label,
        go: () => navigate({ to: `/o/$org/w/$ws/${view}`, params, search: { do: CREATE } }),
      })),
  ];
}

/** What is named in a workspace, of which there are few. */
export function namedIn({ orgId, workspaceId }: Place, names: PaletteNamesQuery, navigate: Navigate): Entry[] {
  const params = { org: orgId, ws: workspaceId };
  return [
    ...names.apps.nodes.map(({ id, name }) => ({
      key: id,
      kind: t.apps.one,
      label: name,
      go: () => navigate({ to: '/o/$org/w/$ws/apps/$app', params: { ...params, app: id } }),
    })),
    ...names.environments.nodes.map(({ id, name }) => ({
      key: id,
      kind: t.environments.one,
      label: name,
      go: () => navigate({ to: '/o/$org/w/$ws/environments', params, search: { environment: id } }),
    })),
    ...names.toolInstances.nodes.map(({ id, name }) => ({
      key: id,
      kind: t.tools.tool,
      label: name,
      go: () => navigate({ to: '/o/$org/w/$ws/tools', params }),
    })),
  ];
}

/** What everybody may do everywhere: notifications, the account, how the console looks, other workspaces. */
export function entriesAnywhere(
  me: ShellQuery['me'],
  { navigate, signOut, chosen }: { navigate: Navigate; signOut: () => Promise<void>; chosen: Theme },
): Entry[] {
  const action = (key: string, label: string, go: () => unknown): Entry => ({ key, kind: t.palette.action, label, go });
  return [
    {
      key: 'notifications',
      kind: t.palette.view,
      label: t.notifications.title,
      go: () => navigate({ to: '/notifications' }),
    },
    ...(administersPlatform(me)
      ? [
          {
            key: 'operators',
            kind: t.palette.view,
            label: t.operators.title,
            go: () => navigate({ to: '/operators' }),
          },
        ]
      : []),
    action('account', t.account.sessions, () => location.assign(new URL('account', serviceUrl).href)),
    ...themes
      .filter((name) => name !== chosen)
      .map((name) => action(`theme-${name}`, t.account.theme(t.account.themes[name]), () => applyTheme(name))),
    ...(Object.keys(languages) as Language[])
      .filter((name) => name !== language)
      .map((name) => action(`language-${name}`, languages[name], () => chooseLanguage(name))),
    action('sign-out', t.account.signOut, signOut),
    ...me.organizations.nodes.flatMap((organization) =>
      organization.workspaces.nodes.map(({ id, name }) => ({
        key: id,
        kind: organization.name,
        label: name,
        go: () => navigate({ to: '/o/$org/w/$ws', params: { org: organization.id, ws: id } }),
      })),
    ),
  ];
}
