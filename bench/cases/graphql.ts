import { type Account, call } from '../api.ts';
import { compare, type Question, type Rounds } from '../load.ts';
import { print } from '../report.ts';
import type { ServerProcess } from '../server-process.ts';
import { newest } from './workspaces.ts';

const FIELDS = `id name description ownerId subscriptionPlanId region storageBucket bucketStatus isActive tags
  createdAt updatedAt`;

/** The same documents to a server of graphql-yoga, Pothos and its Prisma plugin, and to the product's `/graphql`. */
export async function graphql(
  servers: readonly ServerProcess[],
  product: ServerProcess,
  account: Account,
  rounds: Rounds,
): Promise<void> {
  const { orgId } = account;
  const id = await newest(product, account);
  const documents: [title: string, query: string, variables: object][] = [
    [
      'list of 50 workspaces',
      `query List($orgId: ID!, $first: Int!) { workspaces(orgId: $orgId, first: $first) {
        totalCount pageInfo { hasNextPage endCursor } nodes { ${FIELDS} } } }`,
      { orgId, first: 50 },
    ],
    [
      'one workspace',
      `query One($orgId: ID!, $id: ID!) { workspace(orgId: $orgId, id: $id) { ${FIELDS} } }`,
      { orgId, id },
    ],
    [
      'organization, 20 workspaces, their members and namespaces',
      `query Tree($orgId: ID!) { organization(id: $orgId) { id name workspaces(first: 20) { nodes { id name
        members(first: 10) { nodes { id userId role username email } }
        namespaces(first: 10) { nodes { id name slug } } } } } }`,
      { orgId },
    ],
  ];
  for (const [title, query, variables] of documents) {
    const question: Question = { method: 'POST', path: '/graphql', body: JSON.stringify({ query, variables }) };
    await sameAnswer(servers, account, query, variables);
    print(`/graphql: ${title}`, await compare(servers, question, account.token, rounds));
  }
}

/** Only equal work may be compared. Cursors differ, because the product's are sealed. */
async function sameAnswer(
  servers: readonly ServerProcess[],
  { token }: Account,
  query: string,
  variables: object,
): Promise<void> {
  const answers = new Set<string>();
  for (const server of servers) {
    const answer = JSON.stringify(await call<object>(server, token, 'POST', '/graphql', { query, variables }));
    answers.add(answer.replaceAll(/"endCursor":"[^"]*"/g, ''));
  }
  if (answers.size !== 1) throw new Error(`The servers answer differently:\n${[...answers].join('\n')}`);
}
