import { DeploymentService } from '../delivery/environments/deployment.service.ts';
import { EnvironmentService } from '../delivery/environments/environment.service.ts';
import { ReleaseService } from '../delivery/releases/release.service.ts';
import type { Ground } from './ground.ts';
import type { VaultGroup } from './vault.ts';

/** Releases and the environments that they are deployed in. */
export function createDelivery({ deps }: Ground, { open: { secrets } }: VaultGroup) {
  return {
    open: {
      releases: new ReleaseService(deps),
      environments: new EnvironmentService({ ...deps, secrets }),
      deployments: new DeploymentService(deps),
    },
    closed: {},
  };
}
