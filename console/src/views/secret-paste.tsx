import { useState } from 'react';
import { CreateSecretDocument, RotateSecretDocument, type SecretCellFragment } from '../generated/documents';
import { useChange } from '../ground/answers';
import { Dialog } from '../ground/dialog';
import { usePlace } from '../ground/place';
import { faultOf } from '../ground/problem';
import { t } from '../texts';
import { type Column, placeOf } from './secret-values';

interface Pair {
  name: string;
  value: string;
}

/** The pairs of an `.env` file: comments and empty lines have none, quotes are taken off. */
export function pairsOf(text: string): Pair[] {
  return text.split(/\r?\n/).flatMap((line) => {
    const match = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$/.exec(line);
    if (!match) return [];
    const [, name = '', rest = ''] = match;
    const quoted = /^(['"])(.*)\1\s*(?:#.*)?$/.exec(rest);
    if (!quoted) return [{ name, value: rest.replace(/\s+#.*$/, '').trim() }];
    const inner = quoted[2] ?? '';
    return [{ name, value: quoted[1] === '"' ? inner.replaceAll('\\n', '\n').replaceAll('\\"', '"') : inner }];
  });
}

type State = 'waiting' | 'done' | { fault: string };

/** Takes a whole `.env`: shows first what is new and what is rotated. */
export function PasteDialog({
  columns,
  secrets,
  onClose,
}: {
  columns: readonly Column[];
  secrets: readonly SecretCellFragment[];
  onClose: () => void;
}) {
  const { orgId, workspaceId, may } = usePlace();
  const create = useChange(CreateSecretDocument);
  const rotate = useChange(RotateSecretDocument);
  const [text, setText] = useState('');
  const [column, setColumn] = useState('workspace');
  const [states, setStates] = useState<Readonly<Record<string, State>>>({});
  const [isBusy, setBusy] = useState(false);
  // the last line of a name counts, as in a shell
  const pairs = [...new Map(pairsOf(text).map((pair) => [pair.name, pair])).values()];
  const existing = (name: string) =>
    secrets.find(
      (secret) =>
        secret.name === name &&
        (column === 'workspace' ? secret.scope === 'workspace' : secret.environmentId === column),
    );
  const apply = async () => {
    setBusy(true);
    for (const { name, value } of pairs) {
      if (states[name] === 'done') continue;
      const former = existing(name);
      const input = { ...placeOf(workspaceId, column), name, secretType: 'token', value: { value } };
      const { error } = former
        ? await rotate({ orgId, id: former.id, input: { value: { value }, expectedVersion: former.vaultVersion } })
        : await create({ orgId, input });
      const state: State = error ? { fault: faultOf(error).message } : 'done';
      setStates((old) => ({ ...old, [name]: state }));
    }
    setBusy(false);
  };
  const isDone = pairs.length > 0 && pairs.every(({ name }) => states[name] === 'done');
  return (
    <Dialog title={t.secrets.paste} onClose={onClose} isWide>
      <label className="field">
        <span>{t.secrets.where}</span>
        <select value={column} onChange={(event) => setColumn(event.target.value)}>
          {columns.map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label
        className="field"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          const [file] = event.dataTransfer.files;
          if (!file) return;
          event.preventDefault();
          void file.text().then(setText);
        }}
      >
        <span>{t.secrets.envText}</span>
        <textarea
          rows={6}
          spellCheck={false}
          autoComplete="off"
          value={text}
          placeholder={'API_KEY=…\nDATABASE_URL="…"'}
          onChange={(event) => {
            setText(event.target.value);
            setStates({});
          }}
        />
      </label>
      {pairs.length > 0 && (
        <table>
          <caption>{t.secrets.preview(pairs.length)}</caption>
          <tbody>
            {pairs.map(({ name }) => {
              const state = states[name];
              const word = existing(name) ? t.secrets.willRotate : t.secrets.willCreate;
              return (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>
                    {state === 'done' && <span className="tag ok">{t.done}</span>}
                    {typeof state === 'object' && <span className="fault">{state.fault}</span>}
                    {(!state || state === 'waiting') && <span className="quiet">{word}</span>}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      <footer>
        <button type="button" onClick={onClose}>
          {isDone ? t.close : t.cancel}
        </button>
        {!isDone && (
          <button
            type="button"
            className="primary"
            disabled={isBusy || pairs.length === 0 || !may('secret:rotate')}
            onClick={() => void apply()}
          >
            {t.secrets.apply(pairs.length)}
          </button>
        )}
      </footer>
    </Dialog>
  );
}
