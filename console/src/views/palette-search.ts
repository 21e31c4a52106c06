import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import {
  FindEntitiesDocument,
  PaletteNamesDocument,
  type PaletteNamesQuery,
  PalettePeopleDocument,
  PaletteSecretsDocument,
  PaletteToolsDocument,
  SearchArtifactsDocument,
} from '../generated/documents';
import { CREATE } from '../ground/asked';
import { askPastCache } from '../ground/client';
import { useFilters } from '../ground/filters';
import type { Place } from '../ground/place';
import { t } from '../texts';
import { type Entry, type Navigate, namedIn } from './palette-entries';

/** So many of each kind are found. */
const EACH = 5;
/** A word is typed before it is looked for. */
const TYPING_MS = 150;
const SHORTEST = 2;

interface Places {
  place: Place;
  navigate: Navigate;
  /** Where entities are looked for. */
  appId: string | undefined;
  namespaceId: string | undefined;
}
type Search = (places: Places, text: string) => Promise<Entry[]>;

const paramsOf = ({ orgId, workspaceId }: Place) => ({ org: orgId, ws: workspaceId });

const secrets: Search = async ({ place, navigate }, search) => {
  const { orgId, workspaceId, may } = place;
  if (!may('secret:read')) return [];
  const { data } = await askPastCache(PaletteSecretsDocument, { orgId, workspaceId, search });
  return (data?.secrets?.nodes ?? []).map(({ id, name, environment }) => ({
    key: id,
    kind: environment ? `${t.secrets.one} · ${environment.name}` : t.secrets.one,
    label: name,
    go: () => navigate({ to: '/o/$org/w/$ws/secrets', params: paramsOf(place), search: { secret: id } }),
  }));
};

const artifacts: Search = async ({ place, navigate }, query) => {
  const { orgId, workspaceId, may } = place;
  if (!may('artifact:read')) return [];
  const { data } = await askPastCache(SearchArtifactsDocument, { orgId, workspaceId, input: { query, limit: EACH } });
  return (data?.queryWorkspaceArtifacts.results ?? []).map(({ artifact: { id, name, namespaceId } }) => ({
    key: id,
    kind: t.artifacts.one,
    label: name,
    go: () =>
      navigate({
        to: '/o/$org/w/$ws/artifacts',
        params: paramsOf(place),
        search: { namespace: namespaceId, artifact: id },
      }),
  }));
};

const entities: Search = async ({ place, navigate, appId, namespaceId }, query) => {
  const { orgId, workspaceId, may } = place;
  if (!appId || !namespaceId || !may('entity:read')) return [];
  const where = { orgId, workspaceId, appId, namespaceId };
  const { data } = await askPastCache(FindEntitiesDocument, { ...where, query, first: EACH });
  return (data?.searchEntities.results ?? []).map(({ entity: { id, name } }) => ({
    key: id,
    kind: t.graph.entity,
    label: name,
    go: () =>
      navigate({
        to: '/o/$org/w/$ws/graph',
        params: paramsOf(place),
        search: { app: appId, namespace: namespaceId, entity: id },
      }),
  }));
};

/** Tools of the catalogue, to add: those that are in use have names of their own. */
const tools: Search = async ({ place, navigate }, search) => {
  const { orgId, workspaceId, may } = place;
  if (!may('tool_instance:create')) return [];
  const { data } = await askPastCache(PaletteToolsDocument, { orgId, workspaceId, search });
  return (data?.tools.nodes ?? []).map(({ id, name }) => ({
    key: id,
    kind: t.palette.action,
    label: t.tools.addOne(name),
    go: () => navigate({ to: '/o/$org/w/$ws/tools', params: paramsOf(place), search: { do: CREATE, find: name } }),
  }));
};

const people: Search = async ({ place, navigate }, search) => {
  const { data } = await askPastCache(PalettePeopleDocument, { workspaceId: place.workspaceId, search });
  return (data?.users.nodes ?? []).map(({ id, username, fullName }) => ({
    key: id,
    kind: t.palette.person,
    label: fullName ? `${fullName} (${username})` : username,
    go: () => navigate({ to: '/o/$org/w/$ws/people', params: paramsOf(place) }),
  }));
};

const searches: readonly Search[] = [secrets, artifacts, entities, people, tools];

/** What the service finds for a text. A search that it refuses finds nothing, and the others still do. */
async function searchAll(places: Places, text: string): Promise<Entry[]> {
  const found = await Promise.allSettled(searches.map((search) => search(places, text)));
  return found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
}

/** The names in a workspace, read once, and what the service finds for the text that is typed. */
export function useSearch(place: Place | null, text: string) {
  const navigate = useNavigate();
  const [names, setNames] = useState<PaletteNamesQuery | null>(null);
  const [found, setFound] = useState<{ text: string; entries: readonly Entry[] }>({ text: '', entries: [] });
  const [address] = useFilters<'app' | 'namespace'>();
  const { orgId, workspaceId } = place ?? {};
  useEffect(() => {
    let isOver = false;
    if (orgId && workspaceId)
      void askPastCache(PaletteNamesDocument, { orgId, workspaceId }).then(
        ({ data }) => isOver || setNames(data ?? null),
      );
    return () => {
      isOver = true;
    };
  }, [orgId, workspaceId]);
  const idIn = (nodes: readonly { id: string }[] = [], asked?: string) =>
    (nodes.find(({ id }) => id === asked) ?? nodes[0])?.id;
  const appId = idIn(names?.apps.nodes, address.app);
  const namespaceId = idIn(names?.namespaces.nodes, address.namespace);
  const words = text.trim();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a place is another one when its ids are
  useEffect(() => {
    if (!place || words.length < SHORTEST) return;
    let isOver = false;
    const ask = () =>
      searchAll({ place, navigate, appId, namespaceId }, words).then(
        (entries) => isOver || setFound({ text: words, entries }),
      );
    const timer = setTimeout(() => void ask(), TYPING_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [orgId, workspaceId, words, appId, namespaceId]);
  const isSearching = place !== null && words.length >= SHORTEST && found.text !== words;
  return {
    named: place && names ? namedIn(place, names, navigate) : [],
    found: found.text === words ? found.entries : [],
    isSearching,
  };
}
