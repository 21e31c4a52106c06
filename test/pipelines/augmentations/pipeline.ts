import type { ActionFragment, AugmentationFragment, EndpointFragment } from '../../../rest/generated/documents.ts';
import type { TestApp } from '../../support/app.ts';
import { type Answer, type Person, register } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

type StageFragment = AugmentationFragment['stages'][number];

interface Stage extends Omit<RestBody<StageFragment>, 'steps'> {
  steps: RestBody<StageFragment['steps'][number]>[];
}
export interface Augmentation extends Omit<RestBody<AugmentationFragment>, 'stages'> {
  stages: Stage[];
}
export type Endpoint = RestBody<EndpointFragment>;
export type Action = RestBody<ActionFragment>;

/** Somebody with an app. */
export interface Pipeline {
  who: Person;
  appId: string;
  /** `{A}` of the spec. */
  url: string;
  augmentation: (more?: object) => Promise<Augmentation>;
  endpoint: (more: object) => Promise<Answer<Endpoint>>;
  action: (more: object) => Promise<Answer<Action>>;
}

/** An app without parts. */
export async function createPipeline(app: TestApp, who?: Person): Promise<Pipeline> {
  const owner = who ?? (await register(app, { name: 'ann' }));
  const { body } = await owner.call<{ app_id: string }>('POST', `${owner.home}/apps`, { name: 'Shop' });
  const url = `${owner.home}/apps/${body.app_id}`;
  return {
    who: owner,
    appId: body.app_id,
    url,
    augmentation: async (more) =>
      (await owner.call<Augmentation>('POST', `${url}/augmentations`, { name: 'Answers', ...more })).body,
    endpoint: (more) => owner.call<Endpoint>('POST', `${url}/endpoints`, { name: 'Chat', ...more }),
    action: (more) => owner.call<Action>('POST', `${url}/actions`, { name: 'Report', ...more }),
  };
}

/** What a place has of the parts of apps, by counter: as it is kept, without zeros. */
export async function keptCounts(app: TestApp, placeId: string): Promise<Record<string, number>> {
  const { rows } = await app.database.pool.query<{ counter: string; n: number }>(
    `select counter, sum(n)::int as n from place_counts where place_id = $1
      and counter ~ '^(augmentations|endpoints|actions|executions)' group by 1 having sum(n) <> 0 order by 1`,
    [placeId],
  );
  return Object.fromEntries(rows.map(({ counter, n }) => [counter, n]));
}
