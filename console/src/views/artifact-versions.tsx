import { useState } from 'react';
import {
  ArtifactTextDocument,
  ArtifactVersionsDocument,
  type ArtifactVersionsQuery,
  RestoreVersionDocument,
} from '../generated/documents';
import { useAnswer, useChange } from '../ground/answers';
import { askPastCache } from '../ground/client';
import { difference, type Line } from '../ground/difference';
import { usePlace } from '../ground/place';
import { faultOf, Loading, Problem } from '../ground/problem';
import { bytes, Time } from '../ground/time';
import { t } from '../texts';

type Version = ArtifactVersionsQuery['artifactVersions']['versions']['nodes'][number];
interface Which {
  id: string;
  namespaceId: string;
}
type Compared = { older: number; newer: number; lines: Line[] | null; problem: string };

/** More text than this is not compared: a browser would be busy for long. */
const MOST_TEXT = 1_000_000;
/** Unchanged lines that stay around a change. */
const AROUND = 3;

/** The versions of an artifact: what differs between two of them, and how to go back to one. */
export function Versions({ which, createdBy }: { which: Which; createdBy: string | null }) {
  const { orgId, workspaceId, may, me } = usePlace();
  const place = { orgId, workspaceId, namespaceId: which.namespaceId };
  const { data, error } = useAnswer(ArtifactVersionsDocument, { ...place, id: which.id });
  const restore = useChange(RestoreVersionDocument);
  const [problem, setProblem] = useState('');
  const versions = data?.artifactVersions.versions.nodes;
  const mayRestore = may('artifact:update', { isOwn: createdBy === me.id });
  const goBack = async ({ version }: Version) => {
    const { error: refusal } = await restore({ ...place, id: which.id, version });
    setProblem(refusal ? faultOf(refusal).message : '');
  };
  return (
    <section aria-label={t.versions.title}>
      <h3>{t.versions.title}</h3>
      <Problem error={error} message={problem || undefined} />
      {!versions && !error && <Loading />}
      <ul className="plain releases">
        {versions?.map((version) => (
          <li key={version.id}>
            <span>
              {t.versions.name(version.version)}{' '}
              {version.isLatest && <span className="tag ok">{t.versions.latest}</span>}{' '}
              <span className="quiet">
                {bytes(version.sizeBytes)} · <Time at={version.createdAt} />
              </span>
            </span>
            {mayRestore && !version.isLatest && (
              <button
                type="button"
                className="small"
                aria-label={t.versions.restoreOne(version.version)}
                onClick={() => void goBack(version)}
              >
                {t.versions.restore}
              </button>
            )}
          </li>
        ))}
      </ul>
      {data?.artifactVersions.versions.pageInfo.hasNextPage && <p className="quiet">{t.first(50)}</p>}
      {versions && versions.length > 1 && <Compare versions={versions} namespaceId={which.namespaceId} />}
    </section>
  );
}

/** What became of one text in another, or why it is not said. */
function compared(older: Version, newer: Version, before: string | null, after: string | null): Compared {
  const pair = { older: older.version, newer: newer.version };
  if (before === null || after === null) return { ...pair, lines: null, problem: t.versions.noText };
  const lines = before.length + after.length > MOST_TEXT ? null : difference(before, after);
  return { ...pair, lines, problem: lines ? '' : t.versions.tooLarge };
}

function Compare({ versions, namespaceId }: { versions: readonly Version[]; namespaceId: string }) {
  const { orgId, workspaceId } = usePlace();
  const [newerId, setNewer] = useState(versions[0]!.id);
  const [olderId, setOlder] = useState(versions[1]!.id);
  const [result, setResult] = useState<Compared | null>(null);
  const [problem, setProblem] = useState('');
  const compare = async () => {
    const [older, newer] = [versions.find(({ id }) => id === olderId), versions.find(({ id }) => id === newerId)];
    if (!older || !newer) return;
    const answers = await Promise.all(
      [older, newer].map(({ id }) => askPastCache(ArtifactTextDocument, { orgId, workspaceId, namespaceId, id })),
    );
    // what was read in a file is its text, where it has no content of its own
    const [before, after] = answers.map(({ data }) => data?.artifact.content ?? data?.artifact.contentText ?? null);
    const refusal = answers.find((answer) => answer.problem)?.problem;
    setProblem(refusal ?? '');
    setResult(refusal ? null : compared(older, newer, before ?? null, after ?? null));
  };
  const choice = (label: string, value: string, onChange: (id: string) => void) => (
    <label>
      {label}{' '}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {versions.map(({ id, version }) => (
          <option key={id} value={id}>
            {t.versions.name(version)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <p className="toolbar">
        {choice(t.versions.version, olderId, setOlder)} {choice(t.versions.with, newerId, setNewer)}{' '}
        <button type="button" onClick={() => void compare()}>
          {t.versions.compare}
        </button>
      </p>
      <Problem message={problem || result?.problem || undefined} />
      {result?.lines && <Difference result={result} lines={result.lines} />}
    </>
  );
}

type Part = Line | { kind: 'skipped'; count: number };

/** The changes with the lines around them. */
function partsOf(lines: readonly Line[]): Part[] {
  const isNear = lines.map((_, at) =>
    lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ kind }) => kind !== 'same'),
  );
  const parts: Part[] = [];
  for (const [at, line] of lines.entries()) {
    const last = parts.at(-1);
    if (isNear[at]) parts.push(line);
    else if (last?.kind === 'skipped') last.count += 1;
    else parts.push({ kind: 'skipped', count: 1 });
  }
  return parts;
}

const signs = { same: ' ', added: '+', removed: '−' };
const words = { same: '', added: t.versions.added, removed: t.versions.removed };

function Difference({ result: { older, newer }, lines }: { result: Compared; lines: readonly Line[] }) {
  if (lines.every(({ kind }) => kind === 'same')) return <p role="status">{t.versions.same}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard
    <ol className="difference" aria-label={t.versions.difference(older, newer)} tabIndex={0}>
      {partsOf(lines).map((part, at) =>
        part.kind === 'skipped' ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text have no other name
          <li key={at} className="quiet">
            {t.versions.unchanged(part.count)}
          </li>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <li key={at} className={part.kind}>
            <span aria-hidden="true">{signs[part.kind]}</span>
            <span className="unseen">{words[part.kind]}</span>
            <span>{part.text}</span>
          </li>
        ),
      )}
    </ol>
  );
}
