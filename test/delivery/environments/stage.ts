import type { DeploymentFragment, EnvironmentFragment } from '../../../rest/generated/documents.ts';
import type { TestApp } from '../../support/app.ts';
import type { Person } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

export type Environment = RestBody<EnvironmentFragment>;

export interface Deployed {
  message: string;
  deployment_id: string;
  environment_id: string;
  app_id: string;
  release_id: string;
}

export type DeploymentRecord = RestBody<DeploymentFragment>;

export interface History {
  deployments: DeploymentRecord[];
  total: number;
  /** Where the history is walked. */
  has_more?: boolean;
  next_cursor?: string | null;
}

let count = 0;

/** Makes an environment; its name and slug are new unless given. */
export async function newEnvironment(owner: Person, given: object = {}): Promise<Environment> {
  const slug = `env-${++count}`;
  const { status, body } = await owner.call<{ environment: Environment }>('POST', `${owner.home}/environments`, {
    name: slug,
    slug,
    ...given,
  });
  if (status !== 201) throw new Error(`making an environment answered ${status}: ${JSON.stringify(body)}`);
  return body.environment;
}

/** Makes an app with so many releases, oldest first. */
export async function newApp(owner: Person, releases = 1): Promise<{ appId: string; releases: string[] }> {
  const { app_id: appId } = (await owner.call<{ app_id: string }>('POST', `${owner.home}/apps`, { name: 'App' })).body;
  const made: string[] = [];
  for (let i = 0; i < releases; i++) {
    const { body } = await owner.call<{ release_id: string }>('POST', `${owner.home}/apps/${appId}/releases`, {});
    made.push(body.release_id);
  }
  return { appId, releases: made };
}

/** Paths of an environment's operations. */
export const pathsOf = (owner: Person, { environment_id }: { environment_id: string }) => {
  const self = `${owner.home}/environments/${environment_id}`;
  const at = (name: string) => `${self}/${name}`;
  return {
    self,
    deploy: at('deploy'),
    promote: at('promote'),
    deployments: at('deployments'),
    history: at('history'),
  };
};

/** Deploys, which must succeed. */
export async function deploy(
  owner: Person,
  environment: { environment_id: string },
  appId: string,
  releaseId: string,
): Promise<Deployed> {
  const { status, body } = await owner.call<Deployed>('POST', pathsOf(owner, environment).deploy, {
    app_id: appId,
    release_id: releaseId,
  });
  if (status !== 200) throw new Error(`deploying answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

/** The chain of an app in an environment as it stands in the database, oldest first. */
export async function chainOf(app: TestApp, environmentId: string, appId: string) {
  return app.database.prisma.deployment.findMany({
    where: { environmentId, appId },
    orderBy: { number: 'asc' },
    select: { id: true, number: true, action: true, releaseId: true, previousReleaseId: true },
  });
}

/** What the pointer of an app says; `null` when nothing is deployed. */
export async function pointerOf(app: TestApp, environmentId: string, appId: string): Promise<string | null> {
  const slot = await app.database.prisma.environmentSlot.findUnique({
    where: { environmentId_appId: { environmentId, appId } },
  });
  return slot?.releaseId ?? null;
}
