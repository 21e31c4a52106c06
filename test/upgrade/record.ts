import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Client, Json } from '../support/client.ts';
import type { Seeded } from './seed.ts';

/** What a service answered. */
export interface Answer {
  /** Path of a REST read. */
  path: string;
  body: Json;
}

/** What belongs to a dump of rows: who can be, and what the service of then answered. */
export interface Recording {
  /** When the rows and answers were written. */
  writtenAt: string;
  /** The migrations of its schema. */
  migrations: string[];
  seeded: Seeded;
  /** Every REST read of that version, and what it answered to the seed's owner. */
  reads: Answer[];
  /** Answers with values of secrets. */
  reveals: Answer[];
  /** A walk from the reader down to what lies deepest. */
  query: string;
  data: Json;
}

const SETTLE_MS = 5_000;
const ATTEMPTS = 24;

/** Asks for everything that can be read with the ids of the seed, once nothing moves any more. */
export async function record(
  ann: Client,
  seeded: Seeded,
): Promise<Pick<Recording, 'reads' | 'reveals' | 'query' | 'data'>> {
  const paths = (await readablePaths(ann, seeded.ids)).filter((path) => !seeded.reveals.includes(path));
  const reveals = await answersOf(ann, seeded.reveals); // counted, so before the reads
  const reads = await settled(() => answersOf(ann, paths));
  return { reads, reveals, query: WALK, data: await ann.query(WALK) };
}

/**
 * Answers that stay the same: buckets are made and uses are noted a moment later.
 * @throws Error when they still move after two minutes
 */
async function settled(ask: () => Promise<Answer[]>): Promise<Answer[]> {
  let before: Answer[] = [];
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const now = await ask();
    if (isDeepStrictEqual(before, now)) return now;
    before = now;
    await delay(SETTLE_MS);
  }
  const again = await ask();
  const moving = again.filter((answer, i) => !isDeepStrictEqual(answer, before[i]));
  throw new Error(`These answers do not settle: ${JSON.stringify(moving.map(({ path }) => path))}`);
}

/** All of `paths`, one after the other. */
export async function answersOf(client: Client, paths: readonly string[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const path of paths) {
    const body = await client.get(path);
    // numbers say that they are of now
    if (path.includes('/analytics')) delete body.updated_at;
    answers.push({ path, body });
  }
  return answers;
}

/** What is never the same twice: a link to a file, streams, records of requests, series up to the current hour. */
const MOVES = /\/(?:download|stream|hourly|daily)$|\/activity(?:\/summary)?$/;

interface Operation {
  parameters?: { in: string; required?: boolean }[];
}

/** The paths of GET that need no query. @throws Error when the seed has made nothing that a path variable stands for */
async function readablePaths(client: Client, ids: Record<string, string>): Promise<string[]> {
  const document = (await client.get('/openapi.json')) as { paths: Record<string, { get?: Operation }> };
  const needsQuery = ({ parameters = [] }: Operation) => parameters.some((one) => one.in === 'query' && one.required);
  return Object.entries(document.paths)
    .filter(([path, { get }]) => get && !needsQuery(get) && !MOVES.test(path))
    .map(([path]) => path.replace(/\{(\w+)\}/g, (_whole, name: string) => idOf(ids, name, path)));
}

function idOf(ids: Record<string, string>, name: string, path: string): string {
  const id = ids[name];
  if (id === undefined) throw new Error(`No id for {${name}} of ${path}: set it in test/upgrade/seed.ts.`);
  return encodeURIComponent(id);
}

const WALK = `{
  me { id username email preferences organizations(first: 4) { totalCount nodes { id name role
    members(first: 4) { nodes { userId role } }
    workspaces(first: 4) { totalCount nodes { id name
      members(first: 4) { nodes { userId role } }
      namespaces(first: 4) { nodes { id slug threads(first: 4) { nodes { id title metadata } } } }
      apps(first: 4) { nodes { id name releases(first: 4) { nodes { id number version } } } }
    } }
  } } }
}`;
