import { ModelEntitlementService } from '../models/model-entitlements/model-entitlement.service.ts';
import { LogicalModelService } from '../models/models/logical-model.service.ts';
import { ModelRoutingService } from '../models/models/model-routing.service.ts';
import { ModelUsageService } from '../models/models/model-usage.service.ts';
import { ProviderAccountService } from '../models/provider-accounts/provider-account.service.ts';
import { modelUsers } from '../pipelines/augmentations/step-users.ts';
import type { Ground } from './ground.ts';
import type { VaultGroup } from './vault.ts';

/** The catalogue of models, the accounts at their providers, and who may use them. */
export function createModels({ deps, open: { activity } }: Ground, { closed: { vault } }: VaultGroup) {
  return {
    open: {
      models: new LogicalModelService({ ...deps, users: modelUsers }),
      modelEntitlements: new ModelEntitlementService(deps),
      modelRouting: new ModelRoutingService({ ...deps, activity }),
      modelUsage: new ModelUsageService(deps),
      providerAccounts: new ProviderAccountService({ ...deps, vault }),
    },
    closed: {},
  };
}
