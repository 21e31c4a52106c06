import { useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useEffect, useId, useState } from 'react';
import type { ShellQuery } from '../generated/documents';
import { Dialog } from '../ground/dialog';
import { useShownPlace } from '../ground/shown-place';
import { useSignOut } from '../ground/sign-out';
import { useTheme } from '../ground/theme';
import { t } from '../texts';
import { type Entry, entriesAnywhere, entriesIn } from './palette-entries';
import { useSearch } from './palette-search';

/** So many of what is known without a search are shown. */
const MOST = 12;

/** The entries that have the words, and first those that begin with them. */
function matching(entries: readonly Entry[], text: string): Entry[] {
  const words = text.trim().toLowerCase();
  const begins = ({ label }: Entry) => label.toLowerCase().startsWith(words);
  const shown = entries.filter(({ label, kind }) => `${label} ${kind}`.toLowerCase().includes(words));
  return [...shown.filter(begins), ...shown.filter((entry) => !begins(entry))].slice(0, MOST);
}

/** Finds a place, a thing by its name, or what can be done. */
export function Palette({ me, onClose }: { me: ShellQuery['me']; onClose: () => void }) {
  const place = useShownPlace();
  const navigate = useNavigate();
  const signOut = useSignOut();
  const chosenTheme = useTheme();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const { named, found, isSearching } = useSearch(place, text);
  const list = useId();
  const known = [
    ...(place ? entriesIn(place, navigate) : []),
    ...named,
    ...entriesAnywhere(me, { navigate, signOut, chosen: chosenTheme }),
  ];
  // what is found later comes behind what is there: nothing moves under the reader's finger
  const shown = [...matching(known, text), ...found];
  const chosen = shown[Math.min(at, shown.length - 1)];
  const chosenId = chosen && `${list}-${chosen.key}`;
  useEffect(() => {
    if (chosenId) document.getElementById(chosenId)?.scrollIntoView({ block: 'nearest' });
  }, [chosenId]);
  const open = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    void entry.go();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((shown.length + Math.min(at, shown.length - 1) + step) % Math.max(1, shown.length));
    }
    if (event.key === 'Enter') open(chosen);
  };
  return (
    <Dialog title={t.palette.open} onClose={onClose}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-autocomplete="list"
        aria-controls={list}
        aria-activedescendant={chosenId}
        aria-label={t.palette.hint}
        placeholder={t.palette.hint}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <p role="status" className="quiet">
        {isSearching ? t.palette.searching : t.palette.found(shown.length)}
      </p>
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
