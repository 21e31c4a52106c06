import type { Role } from '../../src/access/permissions.ts';
import type { TestApp } from './app.ts';
import { graphqlRequest } from './requests.ts';
import { type Account, register } from './world.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
type Body = Record<string, never>;

export interface Answer<T = Body> {
  status: number;
  body: T;
}

/** Somebody with an organization of their own, who calls the service. */
export interface Person extends Account {
  orgId: string;
  workspaceId: string;
  /** Path of their workspace. */
  home: string;
  /** A REST request; the body of an empty answer is `null`. */
  call<T = Body>(method: Method, url: string, payload?: object): Promise<Answer<T>>;
  /** A GraphQL request. */
  ask<T = Record<string, unknown>>(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<{ data: T; errors?: { extensions: { code: string } }[] }>;
}

let count = 0;

/** Registers somebody. */
export async function person(app: TestApp, name: string): Promise<Person> {
  return caller(app, await register(app, `${name}-${++count}`));
}

/** The calls of an account that is there already. */
export function caller(app: TestApp, account: Account & { orgId: string; workspaceId: string }): Person {
  const authorization = `Bearer ${account.token}`;
  return {
    ...account,
    home: `/v1/orgs/${account.orgId}/workspaces/${account.workspaceId}`,
    async call(method, url, payload) {
      const response = await app.server.inject({
        method,
        url,
        headers: { authorization },
        ...(payload ? { payload } : {}),
      });
      return { status: response.statusCode, body: (response.body === '' ? null : response.json()) as never };
    },
    async ask(query, variables) {
      return (await app.server.inject(graphqlRequest(query, variables, authorization))).json();
    },
  };
}

/** Somebody who joins the owner's organization and workspace, with the same role in both. */
export async function colleague(app: TestApp, owner: Person, role: Role): Promise<Person> {
  const somebody = await person(app, role);
  const payload = { user_id: somebody.userId, role };
  for (const url of [`/v1/orgs/${owner.orgId}/members`, `${owner.home}/members`]) {
    const { status, body } = await owner.call('POST', url, payload);
    if (status !== 201) throw new Error(`${url} answered ${status}: ${JSON.stringify(body)}`);
  }
  return somebody;
}

/** Types of the events that tell of a resource, in order. */
export async function eventsOf(app: TestApp, resourceId: string, orgId?: string): Promise<string[]> {
  const events = await app.database.prisma.event.findMany({
    where: { resourceId, orgId },
    orderBy: { seq: 'asc' },
    select: { type: true },
  });
  return events.map(({ type }) => type);
}

/** What the audit trail holds of changes of a resource, in order. */
export async function changesOf(app: TestApp, resourceId: string) {
  return app.database.prisma.activity.findMany({
    where: { resourceId, action: { notIn: ['read', 'list'] } },
    orderBy: { id: 'asc' },
    select: {
      action: true,
      resourceType: true,
      orgId: true,
      workspaceId: true,
      userId: true,
      statusCode: true,
      metadata: true,
    },
  });
}
