import { usePlace } from '../ground/place';
import { Problem } from '../ground/problem';
import { bytes } from '../ground/time';
import { type Upload, uploads, useUploads } from '../ground/uploads';
import { t } from '../texts';

/** Takes files by drag or by choice, and shows how far they are. */
export function UploadArea({ namespaceId }: { namespaceId: string }) {
  const { orgId, workspaceId, me } = usePlace();
  const shown = useUploads().filter((upload) => upload.workspaceId === workspaceId);
  const add = (files: Iterable<File>) => uploads.add({ orgId, workspaceId, namespaceId }, me.id, files);
  return (
    <section
      className="drop"
      aria-label={t.artifacts.upload}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        add(event.dataTransfer.files);
      }}
    >
      <label>
        {t.artifacts.drop}{' '}
        <input
          type="file"
          multiple
          onChange={({ target }) => {
            add([...(target.files ?? [])]);
            // the same file may be chosen once more
            target.value = '';
          }}
        />
      </label>
      {shown.length > 0 && (
        <ul className="plain uploads" aria-label={t.artifacts.uploads}>
          {shown.map((upload) => (
            <One key={upload.id} upload={upload} />
          ))}
        </ul>
      )}
    </section>
  );
}

function One({ upload: { id, name, size, state, sent, speed, problem } }: { upload: Upload }) {
  const isEnded = state === 'done' || state === 'failed' || state === 'stopped';
  return (
    <li>
      <p>
        <strong>{name}</strong> <span role="status">{t.artifacts.uploadStates[state]}</span>
      </p>
      {state !== 'done' && (
        <p className="progress">
          <progress value={size > 0 ? sent / size : 0} max={1} aria-label={name} />{' '}
          <span className="quiet">
            {t.artifacts.sentOf(bytes(sent), bytes(size))}
            {speed !== null && ` · ${t.artifacts.speed(bytes(speed))}`}
          </span>
        </p>
      )}
      <Problem message={problem ?? undefined} />
      <p className="actions">
        {!isEnded && (
          <button
            type="button"
            className="small"
            aria-label={t.artifacts.stopOne(name)}
            disabled={state === 'finishing'}
            onClick={() => uploads.stop(id)}
          >
            {t.artifacts.stop}
          </button>
        )}
        {(state === 'failed' || state === 'stopped') && (
          <button
            type="button"
            className="small"
            aria-label={t.artifacts.goOnOne(name)}
            onClick={() => uploads.goOn(id)}
          >
            {t.artifacts.goOn}
          </button>
        )}
        {isEnded && (
          <button
            type="button"
            className="small"
            aria-label={t.artifacts.clearOne(name)}
            onClick={() => uploads.remove(id)}
          >
            {t.artifacts.clear}
          </button>
        )}
      </p>
    </li>
  );
}
