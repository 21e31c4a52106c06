import type { TestApp } from './app.ts';
import { expectOk } from './requests.ts';
import type { World } from './world.ts';

/** Makes the app of a world miss a tool: what it misses names its tenant then. */
export async function lackSomething(app: TestApp, { ids, marker, as }: World): Promise<void> {
  const steps = [{ name: marker, step_type: 'tool', tool_slug: marker }];
  await expectOk(app, {
    method: 'POST',
    url: `/v1/orgs/${ids.org_id}/workspaces/${ids.workspace_id}/apps/${ids.app_id}/augmentations`,
    headers: as('owner'),
    payload: { name: marker, stages: [{ name: marker, steps }] },
  });
}
