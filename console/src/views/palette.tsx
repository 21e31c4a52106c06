import { useNavigate } from '@tanstack/react-router';
import { useEffect, useId, useState } from 'react';
import { PaletteSearchDocument, type PaletteSearchQuery, type ShellQuery } from '../generated/documents';
import { askPastCache } from '../ground/client';
import { Dialog } from '../ground/dialog';
import { useNames } from '../ground/filters';
import { t } from '../texts';

interface Entry {
  key: string;
  kind: string;
  label: string;
  go: () => Promise<void>;
}

const places = [
  'activity',
  'analytics',
  'secrets',
  'environments',
  'apps',
  'tools',
  'artifacts',
  'graph',
  'models',
  'people',
  'tokens',
  'sign-in',
  'webhooks',
] as const;

/** Finds a place, a workspace or a thing by its name. */
export function Palette({ me, onClose }: { me: ShellQuery['me']; onClose: () => void }) {
  const { org, ws } = useNames();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const [found, setFound] = useState<PaletteSearchQuery | null>(null);
  const list = useId();
  useEffect(() => {
    if (!org || !ws || text.length < 2) return;
    // a word is typed before it is looked for
    const ask = () => askPastCache(PaletteSearchDocument, { orgId: org, workspaceId: ws, search: text });
    const timer = setTimeout(() => void ask().then(({ data }) => setFound(data ?? null)), 150);
    return () => clearTimeout(timer);
  }, [org, ws, text]);
  const inWorkspace = (): Entry[] => {
    if (!org || !ws) return [];
    const params = { org, ws };
    return [
      {
        key: 'home',
        kind: t.palette.view,
        label: t.sections.home,
        go: () => navigate({ to: '/o/$org/w/$ws', params }),
      },
      ...places.map((name) => ({
        key: name,
        kind: t.palette.view,
        label: t.sections[name],
        go: () => navigate({ to: `/o/$org/w/$ws/${name}`, params }),
      })),
      ...(found?.apps.nodes ?? []).map(({ id, name }) => ({
        key: id,
        kind: t.apps.one,
        label: name,
        go: () => navigate({ to: '/o/$org/w/$ws/apps/$app', params: { ...params, app: id } }),
      })),
      ...(found?.environments.nodes ?? []).map(({ id, name }) => ({
        key: id,
        kind: t.environments.one,
        label: name,
        go: () => navigate({ to: '/o/$org/w/$ws/environments', params, search: { environment: id } }),
      })),
      ...(found?.toolInstances.nodes ?? []).map(({ id, name }) => ({
        key: id,
        kind: t.tools.tool,
        label: name,
        go: () => navigate({ to: '/o/$org/w/$ws/tools', params }),
      })),
    ];
  };
  const all: Entry[] = [
    ...inWorkspace(),
    {
      key: 'notifications',
      kind: t.palette.view,
      label: t.notifications.title,
      go: () => navigate({ to: '/notifications' }),
    },
    ...me.organizations.nodes.flatMap((organization) =>
      organization.workspaces.nodes.map(({ id, name }) => ({
        key: id,
        kind: organization.name,
        label: name,
        go: () => navigate({ to: '/o/$org/w/$ws', params: { org: organization.id, ws: id } }),
      })),
    ),
  ];
  const words = text.toLowerCase();
  const shown = all.filter(({ label, kind }) => `${label} ${kind}`.toLowerCase().includes(words)).slice(0, 12);
  const chosen = shown[Math.min(at, shown.length - 1)];
  const open = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    void entry.go();
  };
  return (
    <Dialog title={t.palette.open} onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={chosen ? `${list}-${chosen.key}` : undefined}
        aria-label={t.palette.hint}
        placeholder={t.palette.hint}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step) {
            event.preventDefault();
            setAt((shown.length + at + step) % Math.max(1, shown.length));
          }
          if (event.key === 'Enter') open(chosen);
        }}
      />
      {shown.length === 0 && <p className="quiet">{t.nothingFound}</p>}
      <div role="listbox" id={list} aria-label={t.palette.open} className="palette">
        {shown.map((entry) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above
          <div
            role="option"
            id={`${list}-${entry.key}`}
            key={entry.key}
            aria-selected={entry === chosen}
            tabIndex={-1}
            onClick={() => open(entry)}
          >
            {entry.label} <small className="quiet">{entry.kind}</small>
          </div>
        ))}
      </div>
    </Dialog>
  );
}
