import pg from 'pg';
import { type Account, call } from '../api.ts';
import { compare, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';

const ARTIFACTS = 1_000;
/** Every so many artifacts one has a text that lists do not show. */
const LONG_EVERY = 10;

interface Page {
  artifacts: { artifact_id: string; namespace_id: string; content: string | null }[];
}

/** A list of 50 and reads by id, of texts of 1.5 KiB and, one in ten, of 64 KiB. */
export async function artifacts(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  databaseUrl: string,
  rounds: Rounds,
): Promise<void> {
  const { orgId, workspaceId, token } = account;
  const namespaces = `/v1/orgs/${orgId}/workspaces/${workspaceId}/namespaces`;
  const body = {
    name: 'Minutes of a meeting',
    description: 'What was said, with a description of a usual length.',
    content: 'Somebody said something that everybody wrote down. '.repeat(30),
    artifact_type: 'markdown',
    tags: ['bench', 'minutes'],
    metadata: { meeting: 7, room: 'north' },
  };
  const made = await call<Page['artifacts'][number]>(product, token, 'POST', `${namespaces}/default/artifacts`, body);
  await seed(databaseUrl, made.artifact_id);
  const list = `${namespaces}/${made.namespace_id}/artifacts`;
  const page = await sameAnswer<Page>(servers, token, list);
  const [short, long] = [false, true].map(
    (isLong) => page.artifacts.find(({ content }) => (content === null) === isLong)!.artifact_id,
  );
  print('list of 50 artifacts', await compare(servers, list, token, rounds));
  for (const [title, id] of [
    ['get one artifact', short],
    ['get one artifact of 64 KiB', long],
  ] as const) {
    await sameAnswer(servers, token, `${list}/${id}`);
    print(title, await compare(servers, `${list}/${id}`, token, rounds));
  }
}

/** Copies an artifact many times. */
async function seed(url: string, id: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(
      `insert into artifacts (id, org_id, workspace_id, namespace_id, name, description, artifact_type,
         root_artifact_id, content, content_preview, mime_type, size_bytes, tags, metadata, created_by)
       select made, org_id, workspace_id, namespace_id, name || ' ' || n, description, artifact_type, made, text,
         content_preview, mime_type, octet_length(text), tags, metadata, created_by
       from artifacts, generate_series(1, ${ARTIFACTS}) n,
         lateral (select left(id, -6) || lpad(n::text, 6, '0') as made,
           case when n % ${LONG_EVERY} = 0 then rpad(content, 65536, content) else content end as text) m
       where id = $1`,
      [id],
    );
    await client.query('vacuum analyze artifacts');
  } finally {
    await client.end();
  }
}

/** Only equal work may be compared. Cursors differ, because the product's are sealed. */
async function sameAnswer<Body extends object>(
  servers: readonly ServerProcess[],
  token: string,
  path: string,
): Promise<Body> {
  const bodies = await Promise.all(servers.map((server) => call<Body>(server, token, 'GET', path)));
  const texts = bodies.map((body) => JSON.stringify(body).replaceAll(/"next_cursor":"[^"]*"/g, ''));
  if (new Set(texts).size !== 1) throw new Error(`The servers answer ${path} differently:\n${texts.join('\n')}`);
  return bodies[0]!;
}
