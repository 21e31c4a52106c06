import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { type Answer, register } from '../../support/person.ts';
import { inTransaction } from '../../support/rows.ts';
import {
  chainOf,
  type Deployed,
  deploy,
  type Environment,
  newApp,
  newEnvironment,
  pathsOf,
  pointerOf,
} from './stage.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/**
 * Every record follows the one before: number by number, release by release, id by id. @returns what is deployed in the
 * end
 */
async function expectChain(environmentId: string, appId: string): Promise<string | null> {
  const chain = await chainOf(app, environmentId, appId);
  expect(chain.map(({ number }) => number)).toEqual(chain.map((_, index) => index + 1));
  expect(chain.map(({ id }) => id)).toEqual(chain.map(({ id }) => id).sort());
  let before: string | null = null;
  for (const { action, releaseId, previousReleaseId } of chain) {
    expect(previousReleaseId).toBe(before);
    if (action === 'undeploy') expect(releaseId).toBe(before);
    before = action === 'undeploy' ? null : releaseId;
  }
  // the events were written in the order of the chain
  const events = await app.database.prisma.event.findMany({
    where: { resourceId: { in: chain.map(({ id }) => id) } },
    orderBy: { seq: 'asc' },
  });
  expect(events.map(({ resourceId }) => resourceId)).toEqual(chain.map(({ id }) => id));
  return before;
}

const statusesOf = (answers: Answer<unknown>[]) => answers.map(({ status }) => status);

test('twenty deploy at once: the chain is exact, and the last of it is what is deployed', async () => {
  const ann = await register(app, { name: 'ann' });
  const [environment, { appId, releases }] = [await newEnvironment(ann), await newApp(ann, 20)];
  const { self, deploy: at } = pathsOf(ann, environment);
  const answers = await Promise.all(
    releases.map((release_id) => ann.call<Deployed>('POST', at, { app_id: appId, release_id })),
  );
  expect(statusesOf(answers)).toEqual(Array(20).fill(200));
  const last = await expectChain(environment.environment_id, appId);
  const chain = await chainOf(app, environment.environment_id, appId);
  expect(chain.map(({ releaseId }) => releaseId).sort()).toEqual(releases.toSorted());
  expect(chain.map(({ id }) => id).sort()).toEqual(answers.map(({ body }) => body.deployment_id).sort());
  expect(chain.every(({ action }) => action === 'deploy')).toBe(true);
  expect(await pointerOf(app, environment.environment_id, appId)).toBe(last);
  expect((await ann.call<Environment>('GET', self)).body.active_deployments).toEqual({ [appId]: last });
});

test('deploying, promoting and undeploying at once in two environments: both chains are exact', async () => {
  const ann = await register(app, { name: 'ann' });
  const [one, two] = [await newEnvironment(ann), await newEnvironment(ann)];
  const { appId, releases } = await newApp(ann, 4);
  for (const environment of [one, two]) await deploy(ann, environment, appId, releases[0]!);
  const answers = await Promise.all(
    [
      [one, two],
      [two, one],
    ].flatMap(([here, there]) => {
      const { deploy: at, promote } = pathsOf(ann, here!);
      return releases.flatMap((release_id) => [
        ann.call('POST', at, { app_id: appId, release_id }),
        ann.call('POST', promote, { app_id: appId, from_environment_id: there!.environment_id }),
        ann.call('DELETE', `${at}/${appId}`),
      ]);
    }),
  );
  expect(statusesOf(answers).filter((status) => status !== 200 && status !== 404)).toEqual([]);
  for (const { environment_id } of [one, two])
    expect(await pointerOf(app, environment_id, appId)).toBe(await expectChain(environment_id, appId));
});

test('deploying while environment, app and release are deleted: no fault, no orphan, an exact chain', async () => {
  const ann = await register(app, { name: 'ann' });
  await newEnvironment(ann);
  for (let round = 0; round < 6; round++) {
    const environment = await newEnvironment(ann);
    const { environment_id } = environment;
    const [shop, blog] = [await newApp(ann, 5), await newApp(ann, 2)];
    const { self, deploy: at } = pathsOf(ann, environment);
    const answers = await Promise.all([
      ...[...shop.releases, ...shop.releases].map((release_id) =>
        ann.call('POST', at, { app_id: shop.appId, release_id }),
      ),
      ...blog.releases.map((release_id) => ann.call('POST', at, { app_id: blog.appId, release_id })),
      ann.call('DELETE', `${at}/${shop.appId}`),
      ann.call('DELETE', `${ann.home}/apps/${shop.appId}/releases/${shop.releases[2]}`),
      ann.call('DELETE', `${ann.home}/apps/${blog.appId}`),
      ...(round % 2 ? [ann.call('DELETE', self)] : [ann.call('DELETE', `${ann.home}/apps/${shop.appId}`)]),
      ann.call('POST', at, { app_id: shop.appId, release_id: shop.releases[0] }),
    ]);
    expect(statusesOf(answers).filter((status) => ![200, 204, 404, 409].includes(status))).toEqual([]);
    for (const { appId } of [shop, blog])
      expect(await expectChain(environment_id, appId)).toBe(await pointerOf(app, environment_id, appId));
  }
  const dangling = await app.database.pool.query(
    `select 1 from environment_slots s left join releases r on r.id = s.release_id and r.app_id = s.app_id
     where s.release_id is not null and r.id is null`,
  );
  expect(dangling.rows).toEqual([]);
});

test('a release that is being deployed is not deleted, and one that is being deleted is not deployed', async () => {
  const ann = await register(app, { name: 'ann' });
  const environment = await newEnvironment(ann);
  const { appId, releases } = await newApp(ann, 10);
  const { deploy: at } = pathsOf(ann, environment);
  for (const release_id of releases) {
    const [deploying, deleting] = await Promise.all([
      ann.call('POST', at, { app_id: appId, release_id }),
      ann.call('DELETE', `${ann.home}/apps/${appId}/releases/${release_id}`),
    ]);
    expect([
      [200, 409],
      [404, 204],
    ]).toContainEqual([deploying.status, deleting.status]);
  }
});

test('two apps do not wait for each other: while one is held, the other is deployed', async () => {
  const ann = await register(app, { name: 'ann' });
  const environment = await newEnvironment(ann);
  const { environment_id } = environment;
  const [shop, blog] = [await newApp(ann, 2), await newApp(ann, 2)];
  for (const { appId, releases } of [shop, blog]) await deploy(ann, environment, appId, releases[0]!);
  let waiting: Promise<Deployed> | undefined;
  await inTransaction(app.database.pool, async (db) => {
    await db.query('select 1 from environment_slots where environment_id = $1 and app_id = $2 for update', [
      environment_id,
      shop.appId,
    ]);
    waiting = deploy(ann, environment, shop.appId, shop.releases[1]!);
    await deploy(ann, environment, blog.appId, blog.releases[1]!);
    expect(await pointerOf(app, environment_id, blog.appId)).toBe(blog.releases[1]);
    expect(await pointerOf(app, environment_id, shop.appId)).toBe(shop.releases[0]);
  });
  await waiting;
  expect(await pointerOf(app, environment_id, shop.appId)).toBe(shop.releases[1]);
});
