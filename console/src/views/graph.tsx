import { type ReactNode, useCallback, useEffect, useMemo, useState } from 'react';
import {
  EntityDetailDocument,
  FindEntitiesDocument,
  type FindEntitiesQuery,
  GraphEntitiesDocument,
  type GraphEntitiesQuery,
  GraphPlacesDocument,
} from '../generated/documents';
import { useAnswer } from '../ground/answers';
import { askPastCache } from '../ground/client';
import { useFilters } from '../ground/filters';
import { usePages } from '../ground/pages';
import { usePlace } from '../ground/place';
import { Empty, Loading, Problem } from '../ground/problem';
import { useTyped } from '../ground/typed';
import { t } from '../texts';
import { type Detail, EntityPanel, type GraphPlace, NewEntity } from './entity-panel';
import { GraphCanvas, kindTokens } from './graph-canvas';
import type { GraphEdge, GraphNode } from './graph-layout';

type Listed = GraphEntitiesQuery['entities']['nodes'][number];
type Filter = 'app' | 'namespace' | 'entity';

/** How many entities are drawn without being asked for: the newest. Beside them, those around the chosen one. */
const MOST_DRAWN = 500;

/** How many entities the list shows without being asked for more. */
const AT_ONCE = 50;

/** What an app knows in a namespace: entities and their relations, drawn and to walk along. */
export function Graph(): ReactNode {
  const { orgId, workspaceId, may } = usePlace();
  const [search, change] = useFilters<Filter>();
  const { data, error } = useAnswer(GraphPlacesDocument, { orgId, workspaceId });
  const [isCreating, setCreating] = useState(false);
  const [apps, namespaces] = [data?.apps.nodes ?? [], data?.namespaces.nodes ?? []];
  const appId = (apps.find(({ id }) => id === search.app) ?? apps[0])?.id;
  const namespaceId = (namespaces.find(({ id }) => id === search.namespace) ?? namespaces[0])?.id;
  const place = useMemo(
    () => (appId && namespaceId ? { orgId, workspaceId, appId, namespaceId } : null),
    [orgId, workspaceId, appId, namespaceId],
  );
  const choose = (label: string, name: 'app' | 'namespace', value: string, choices: typeof apps) => (
    <label>
      {label}{' '}
      <select value={value} onChange={(event) => change({ [name]: event.target.value, entity: '' })}>
        {choices.map((choice) => (
          <option key={choice.id} value={choice.id}>
            {choice.name}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <>
      <header className="toolbar">
        <h1 className="grow">{t.graph.title}</h1>
        {place && may('entity:create') && (
          <button type="button" className="primary" onClick={() => setCreating(true)}>
            {t.graph.create}
          </button>
        )}
      </header>
      <Problem error={error} />
      {!data && !error && <Loading />}
      {data && !place && <Empty title={t.graph.noPlace}>{t.graph.noPlaceHint}</Empty>}
      {place && (
        <>
          <div className="toolbar">
            {choose(t.apps.one, 'app', place.appId, apps)}
            {choose(t.artifacts.namespace, 'namespace', place.namespaceId, namespaces)}
          </div>
          <Entities key={`${place.appId} ${place.namespaceId}`} place={place} />
        </>
      )}
      {isCreating && place && (
        <NewEntity place={place} onClose={() => setCreating(false)} onMade={(id) => change({ entity: id })} />
      )}
    </>
  );
}

function Entities({ place }: { place: GraphPlace }) {
  const [{ entity: asked = '' }, change] = useFilters<Filter>();
  const list = usePages(GraphEntitiesDocument, place, ({ entities }) => entities, { all: MOST_DRAWN });
  const detail = useAnswer(EntityDetailDocument, { ...place, id: asked }, { isWaiting: !asked });
  const found = detail.data?.entity;
  // another id leads to an entity that was merged
  const chosen = asked && found ? found : null;
  const graph = useMemo(() => graphOf(list.rows, chosen), [list.rows, chosen]);
  const kinds = useMemo(() => kindsOf(graph.nodes), [graph]);
  const kindOf = useCallback((entityType: string) => placeOfKind(kinds, entityType), [kinds]);
  const choose = (id: string | null) => change({ entity: id ?? '' });
  if (list.error && list.rows.length === 0) return <Problem error={list.error} />;
  if (list.rows.length === 0)
    return list.isLoading ? <Loading /> : <Empty title={t.graph.none}>{t.graph.noneHint}</Empty>;
  return (
    <div className="graph-columns">
      <section aria-label={t.graph.picture} className="card">
        <GraphCanvas
          label={t.graph.drawn(graph.nodes.length, graph.edges.length)}
          nodes={graph.nodes}
          edges={graph.edges}
          chosen={graph.nodes.some(({ id }) => id === asked) ? asked : (chosen?.id ?? null)}
          kindOf={kindOf}
          onChoose={choose}
        />
        <ul className="legend" aria-label={t.graph.types}>
          {kinds.map(({ name, count }, at) => (
            <li key={name}>
              <span className={`kind kind-${Math.min(at + 1, kindTokens.length)}`} aria-hidden="true" /> {name} {count}
            </li>
          ))}
        </ul>
        {list.hasMore && <p className="quiet">{t.graph.newest(list.rows.length)}</p>}
      </section>
      <div className="graph-side">
        <p className="unseen" role="status">
          {chosen && t.graph.chosen(chosen.name, chosen.entityType, chosen.relations.nodes.length)}
        </p>
        {asked && !found && detail.isLoading && <Loading />}
        {asked && !found && <Problem error={detail.error} />}
        {chosen && <EntityPanel place={place} entity={chosen} nodes={graph.nodes} onChoose={choose} />}
        <EntityList place={place} nodes={graph.nodes} chosen={chosen?.id ?? null} onChoose={choose} />
      </div>
    </div>
  );
}

/** The listed entities with the chosen one and what is around it; of the relations, those with both ends among them. */
function graphOf(rows: readonly Listed[], chosen: Detail | null) {
  const nodes = new Map<string, GraphNode>();
  const edges = new Map<string, GraphEdge>();
  const add = ({ id, name, entityType, importance }: GraphNode) => nodes.set(id, { id, name, entityType, importance });
  for (const row of rows) add(row);
  if (chosen) for (const one of [chosen, ...chosen.relations.nodes.map(({ target }) => target)]) add(one);
  const relations = [
    ...rows.flatMap(({ id, newestRelations }) => newestRelations.map((relation) => ({ id, ...relation }))),
    ...(chosen?.relations.nodes.map((relation) => ({ id: chosen.id, ...relation })) ?? []),
  ];
  for (const { id, relationId, relationType: type, direction, targetEntityId } of relations) {
    if (!nodes.has(targetEntityId)) continue;
    const [source, target] = direction === 'outgoing' ? [id, targetEntityId] : [targetEntityId, id];
    edges.set(relationId, { id: relationId, type, source, target });
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

interface Kind {
  name: string;
  count: number;
}

/** The types of entities, the most frequent first. */
function kindsOf(nodes: readonly GraphNode[]): Kind[] {
  const counts = new Map<string, number>();
  for (const { entityType } of nodes) counts.set(entityType, (counts.get(entityType) ?? 0) + 1);
  const kinds = [...counts].map(([name, count]) => ({ name, count }));
  return kinds.sort((one, other) => other.count - one.count || one.name.localeCompare(other.name));
}

const placeOfKind = (kinds: readonly Kind[], entityType: string): number => {
  const at = kinds.findIndex(({ name }) => name === entityType);
  return at < 0 ? kindTokens.length - 1 : Math.min(at, kindTokens.length - 1);
};

type Found = FindEntitiesQuery['searchEntities']['results'];

/** Entities that a search of the service finds for words, also those that are not drawn. */
function useFound(place: GraphPlace, words: string) {
  const [answer, setAnswer] = useState<{ words: string; found: Found; problem: string }>();
  const typed = useTyped(words);
  useEffect(() => {
    if (typed.length < 2) return;
    let isOver = false;
    const ask = async () => {
      const { data, problem = '' } = await askPastCache(FindEntitiesDocument, { ...place, query: typed });
      if (!isOver) setAnswer({ words: typed, found: data?.searchEntities.results ?? [], problem });
    };
    void ask();
    return () => {
      isOver = true;
    };
  }, [place, typed]);
  return answer?.words === words ? answer : null;
}

/** What is drawn, as a list: for whoever does not see the drawing, or looks for a name. */
function EntityList({
  place,
  nodes,
  chosen,
  onChoose,
}: {
  place: GraphPlace;
  nodes: readonly GraphNode[];
  chosen: string | null;
  onChoose: (id: string) => void;
}) {
  const [words, setWords] = useState('');
  const [most, setMost] = useState(AT_ONCE);
  const answer = useFound(place, words.trim());
  const drawn = useMemo(() => [...nodes].sort((one, other) => one.name.localeCompare(other.name)), [nodes]);
  const byName = drawn.filter(({ name }) => name.toLowerCase().includes(words.trim().toLowerCase()));
  const known = new Set(byName.map(({ id }) => id));
  const others = answer?.found.map(({ entity }) => entity).filter(({ id }) => !known.has(id)) ?? [];
  const shown = [...byName, ...others];
  return (
    <section aria-labelledby="entities" className="card">
      <h2 id="entities">{t.graph.list}</h2>
      <input
        type="search"
        aria-label={t.graph.find}
        placeholder={t.graph.find}
        value={words}
        onChange={(event) => setWords(event.target.value)}
      />
      <Problem message={answer?.problem} />
      {shown.length === 0 && <p className="quiet">{t.nothingFound}</p>}
      <ul className="plain entities">
        {shown.slice(0, most).map(({ id, name, entityType }) => (
          <li key={id}>
            <button
              type="button"
              className="plain link"
              aria-current={id === chosen ? 'true' : undefined}
              onClick={() => onChoose(id)}
            >
              {name}
            </button>{' '}
            <small className="quiet">{entityType}</small>
          </li>
        ))}
      </ul>
      {shown.length > most && (
        <button type="button" className="small" onClick={() => setMost(most + 4 * AT_ONCE)}>
          {t.more}
        </button>
      )}
    </section>
  );
}
