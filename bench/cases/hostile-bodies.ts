import type { Account } from '../api.ts';
import { median } from '../load.ts';
import type { ServerProcess } from '../server-process.ts';

const REPEATS = 10;
const ROUNDS = 3;

export interface HostileBody {
  what: string;
  path: string;
  /** The same each time, or another one. */
  text: string | (() => string);
  type?: string;
  isOfStranger?: boolean;
}

const many = (count: number, item: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => item(n)).join(',');
const keys = (count: number) => many(count, (n) => `"k${n}":1`);
let different = 0;
/** Objects with keys that no body before had, which cost the parser the most. */
const differentKeys = (objects: number, each: number) =>
  many(objects, () => `{${many(each, () => `"d${different++}":1`)}}`);
const KIB = 1024;
const form = (parts: string) => ({ type: 'multipart/form-data; boundary=x', text: `${parts}--x--\r\n` });
const part = (head: string, text: string) => `--x\r\ncontent-disposition: form-data; name=${head}\r\n\r\n${text}\r\n`;

export const LARGE_FORMS = ['files, 20 MiB', 'fields, 20 MiB', 'parts without a name, 20 MiB'] as const;

/** The bodies that are called so, or all that somebody sends who has not signed in: `strangers`. */
export const bodiesOf = (account: Account, what: string): HostileBody[] =>
  hostileBodies(account).filter((body) => (what === 'strangers' ? body.isOfStranger : body.what === what));

/** Bodies as large as they may be, of what costs the most to read, and larger ones. */
function hostileBodies({ orgId, workspaceId }: Account): HostileBody[] {
  const tools = `/v1/orgs/${orgId}/tools`;
  const upload = `/v1/orgs/${orgId}/workspaces/${workspaceId}/namespaces/default/artifacts/upload`;
  const login = { path: '/v1/auth/login', isOfStranger: true };
  const typename = `"query":"{ __typename }"`;
  return [
    { ...login, what: 'keys, 64 KiB', text: `{${keys(5_700)}}` },
    { ...login, what: 'objects, 64 KiB', text: `{"username":[${many(7_000, (n) => `{"${n}":1}`).slice(0, 60 * KIB)}` },
    { ...login, what: 'keys, 2 MiB', text: `{${keys(170_000)}}` },
    { ...login, what: 'a name of 60 KiB', text: `{"username":"${'a'.repeat(60 * KIB)}","password":"x"}` },
    { path: '/v1/auth/register', isOfStranger: true, what: 'keys, 64 KiB', text: `{${keys(5_700)}}` },
    { path: tools, what: '6,600 keys', text: `{${keys(6_600)}}` },
    { path: tools, what: 'different keys, 50 each', text: () => `{"config_schema":[${differentKeys(130, 50)}]}` },
    { path: tools, what: 'different keys, 1,000 each', text: () => `{"config_schema":[${differentKeys(6, 1_000)}]}` },
    { path: tools, what: '20,000 keys', text: `{${keys(20_000)}}` },
    { path: tools, what: '4,900 objects', text: `{"actions":[${many(4_900, (n) => `{"a${n}":1}`)}]}` },
    { path: tools, what: '2,800 actions', text: `{"actions":[${many(2_800, (n) => `{"name":"a${n}","x":1}`)}]}` },
    {
      path: tools,
      what: '65 keys with 100 each',
      text: `{"config_schema":{${many(65, (n) => `"o${n}":{${keys(100)}}`)}}}`,
    },
    { path: tools, what: 'keys, 2 MiB', text: `{${keys(150_000)}}` },
    { path: tools, what: 'brackets, 2 MiB', text: `{"config_schema":[${'[],'.repeat(650_000)}[]]}` },
    { path: tools, what: 'a text of 2 MiB', text: `{"name":"${'a'.repeat(2_000 * KIB)}"}` },
    { path: '/graphql', what: 'variables of 6,600 keys', text: `{${typename},"variables":{${keys(6_600)}}}` },
    {
      path: '/graphql',
      what: 'variables of different keys, 50 each',
      text: () => `{${typename},"variables":{"a":[${differentKeys(130, 50)}]}}`,
    },
    {
      path: '/graphql',
      what: 'a variable of 20,000 items',
      text: `{"query":"query($a: [ID!]!) { nodes(ids: $a) { id } }","variables":{"a":[${many(19_990, () => '"x"')}]}}`,
    },
    { path: '/graphql', what: 'variables of 1 MiB', text: `{${typename},"variables":{${keys(80_000)}}}` },
    { path: upload, what: 'files, 2 MiB', ...form(part('"file"; filename="a"', 'x').repeat(28_000)) },
    { path: upload, what: LARGE_FORMS[0], ...form(part('"file"; filename="a"', 'x').repeat(280_000)) },
    { path: upload, what: LARGE_FORMS[1], ...form(part('"a"', 'x').repeat(350_000)) },
    { path: upload, what: LARGE_FORMS[2], ...form('--x\r\n\r\nx\r\n'.repeat(2_000_000)) },
    { path: upload, what: 'tags between commas, 256 KiB', ...form(part('"tags"', 'a,'.repeat(128 * KIB))) },
    { path: upload, what: 'metadata of keys, 4 x 250 KiB', ...form(part('"metadata"', `{${keys(20_000)}}`).repeat(4)) },
  ];
}

/**
 * What the bodies cost that are hardest to read: the processor time of one, from its arrival to its answer. Each may
 * take 50 ms. `BENCH_ONLY=hostile npm run bench` has it beside hostile documents.
 */
export async function hostileBodiesCost(product: ServerProcess, account: Account): Promise<void> {
  console.log('\nhostile bodies: CPU of one');
  for (const body of hostileBodies(account)) {
    const statuses = new Set([await sendHostile(product, account, body)]);
    const rounds: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const before = product.cpuSeconds();
      for (let n = 0; n < REPEATS; n++) statuses.add(await sendHostile(product, account, body));
      rounds.push(((product.cpuSeconds() - before) * 1_000) / REPEATS);
    }
    const place = body.path.split('/').at(-1)!;
    console.log(`  ${median(rounds).toFixed(1).padStart(6)} ms  ${[...statuses].join(', ')}  ${place}: ${body.what}`);
  }
}

/** @returns the status; 0 if the service ended the connection */
export async function sendHostile(
  { url }: Pick<ServerProcess, 'url'>,
  { token }: Account,
  body: HostileBody,
): Promise<number> {
  const { path, text, type = 'application/json', isOfStranger } = body;
  const headers: Record<string, string> = { 'content-type': type, accept: 'application/json' };
  if (!isOfStranger) headers.authorization = `Bearer ${token}`;
  try {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers,
      body: typeof text === 'string' ? text : text(),
    });
    await answer.arrayBuffer();
    return answer.status;
  } catch (error) {
    // the service ended the connection of a body that it refused
    if (error instanceof TypeError) return 0;
    throw error;
  }
}
