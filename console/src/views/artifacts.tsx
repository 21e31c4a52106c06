import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react';
import {
  ArtifactDetailDocument,
  ArtifactLinkDocument,
  ArtifactsDocument,
  NamespacesDocument,
  SearchArtifactsDocument,
  type SearchArtifactsQuery,
} from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { askPastCache } from '../ground/client';
import { Dialog } from '../ground/dialog';
import { useFilters } from '../ground/filters';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, Loading, Problem } from '../ground/problem';
import { Rows } from '../ground/rows';
import { bytes, Time } from '../ground/time';
import { t } from '../texts';
import { UploadArea } from './upload-area';

const Versions = lazy(() => import('./artifact-versions').then(({ Versions: one }) => ({ default: one })));

type Found = SearchArtifactsQuery['queryWorkspaceArtifacts']['results'];
interface Which {
  id: string;
  namespaceId: string;
}

/** The artifacts of a workspace: found by words, listed by namespace, uploaded by drag. */
export function Artifacts(): ReactNode {
  const { orgId, workspaceId, may } = usePlace();
  const [search, change] = useFilters<'find' | 'namespace' | 'artifact'>();
  const { data, error } = useAnswer(NamespacesDocument, { orgId, workspaceId });
  const [words, setWords] = useState(search.find ?? '');
  const namespaces = data?.namespaces.nodes ?? [];
  const namespaceId = (namespaces.find(({ id }) => id === search.namespace) ?? namespaces[0])?.id;
  // an artifact is opened where it is: its namespace is the one that is listed
  const open = (which: Which | null) =>
    change(which ? { namespace: which.namespaceId, artifact: which.id } : { artifact: '' });
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.sections.artifacts}</h1>
        <search>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              change({ find: words });
            }}
          >
            <input
              type="search"
              aria-label={t.artifacts.find}
              placeholder={t.artifacts.find}
              value={words}
              onChange={(event) => setWords(event.target.value)}
            />{' '}
            <button type="submit">{t.artifacts.search}</button>
          </form>
        </search>
      </header>
      <Problem error={error} />
      {!data && !error && <Loading />}
      {search.find && <Results query={search.find} onOpen={open} />}
      {data && namespaces.length === 0 && <Empty title={t.artifacts.noNamespace} />}
      {namespaceId && (
        <>
          <header className="toolbar">
            <label className="grow">
              {t.artifacts.namespace}{' '}
              <select value={namespaceId} onChange={(event) => change({ namespace: event.target.value })}>
                {namespaces.map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
          </header>
          {may('artifact:create') && <UploadArea namespaceId={namespaceId} />}
          <List namespaceId={namespaceId} onOpen={open} />
        </>
      )}
      {search.artifact && namespaceId && (
        <Detail which={{ id: search.artifact, namespaceId }} onClose={() => open(null)} />
      )}
    </>
  );
}

function Results({ query, onOpen }: { query: string; onOpen: (which: Which) => void }) {
  const { orgId, workspaceId } = usePlace();
  const [found, setFound] = useState<Found | null>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let isOver = false;
    void askPastCache(SearchArtifactsDocument, { orgId, workspaceId, input: { query, limit: 20 } }).then((answer) => {
      if (isOver) return;
      setFound(answer.data?.queryWorkspaceArtifacts.results ?? null);
      setProblem(answer.problem ?? '');
    });
    return () => {
      isOver = true;
    };
  }, [orgId, workspaceId, query]);
  return (
    <section className="card" aria-label={t.artifacts.results} aria-live="polite">
      <Problem message={problem} />
      {!found && !problem && <Loading />}
      {found?.length === 0 && <p>{t.nothingFound}</p>}
      <ul className="plain">
        {found?.map(({ artifact, matchedChunk }) => (
          <li key={artifact.id}>
            <button
              type="button"
              className="plain link"
              onClick={() => onOpen({ id: artifact.id, namespaceId: artifact.namespaceId })}
            >
              {artifact.name}
            </button>
            <p className="quiet clip">{matchedChunk}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function List({ namespaceId, onOpen }: { namespaceId: string; onOpen: (which: Which) => void }) {
  const { orgId, workspaceId } = usePlace();
  const list = usePages(ArtifactsDocument, { orgId, workspaceId, namespaceId }, ({ artifacts }) => artifacts);
  return (
    <Rows
      label={t.sections.artifacts}
      list={list}
      idOf={({ id }) => id}
      empty={<Empty title={t.artifacts.none} />}
      columns={[
        {
          label: t.name,
          cell: ({ id, name }) => (
            <button type="button" className="plain link" onClick={() => onOpen({ id, namespaceId })}>
              {name}
            </button>
          ),
        },
        { label: t.artifacts.type, isExtra: true, cell: ({ artifactType, mimeType }) => mimeType ?? artifactType },
        { label: t.artifacts.size, cell: ({ sizeBytes, version }) => `${bytes(sizeBytes)} · v${version}` },
        { label: t.changed, cell: ({ updatedAt }) => <Time at={updatedAt} /> },
      ]}
    />
  );
}

function Detail({ which, onClose }: { which: Which; onClose: () => void }) {
  const { orgId, workspaceId } = usePlace();
  const { data, error } = useAnswer(ArtifactDetailDocument, { orgId, workspaceId, ...which });
  const [problem, setProblem] = useState('');
  const download = async () => {
    const answer = await askPastCache(ArtifactLinkDocument, { orgId, workspaceId, ...which });
    setProblem(answer.problem ?? '');
    const url = answer.data?.artifact.downloadLink.downloadUrl;
    if (url && /^https?:/.test(url)) location.assign(url);
  };
  const artifact = data?.artifact;
  return (
    <Dialog title={artifact?.name ?? t.artifacts.one} onClose={onClose} isWide>
      <Problem error={error} message={problem || undefined} />
      {!artifact && !error && <Loading />}
      {artifact && (
        <>
          {artifact.summary && <p>{artifact.summary}</p>}
          <p className="quiet">
            {artifact.mimeType} · {bytes(artifact.sizeBytes)} · v{artifact.version} · <Time at={artifact.createdAt} />
          </p>
          {artifact.indexError && <Problem message={artifact.indexError} />}
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard */}
          {artifact.contentPreview && <pre tabIndex={0}>{artifact.contentPreview}</pre>}
          <Suspense fallback={<Loading />}>
            <Versions which={which} createdBy={artifact.createdBy} />
          </Suspense>
          {artifact.hasFile && (
            <footer>
              <button type="button" className="primary" onClick={() => void download()}>
                {t.artifacts.download}
              </button>
            </footer>
          )}
        </>
      )}
    </Dialog>
  );
}
