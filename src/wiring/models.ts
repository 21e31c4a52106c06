import { Embeddings } from '../models/embeddings/embeddings.ts';
import { ModelEntitlementService } from '../models/model-entitlements/model-entitlement.service.ts';
import { LogicalModelService } from '../models/models/logical-model.service.ts';
import { ModelRoutingService } from '../models/models/model-routing.service.ts';
import { ModelUsageService } from '../models/models/model-usage.service.ts';
import { ProviderAccountService } from '../models/provider-accounts/provider-account.service.ts';
import { modelDependents } from '../pipelines/augmentations/step-dependents.ts';
import { embeddingModelDependents } from '../tenancy/workspaces/embedding-model-dependents.ts';
import type { Ground } from './ground.ts';
import type { VaultGroup } from './vault.ts';

export type Models = ReturnType<typeof createModels>;

/** The catalogue of models, the accounts at their providers, and who may use them. */
export function createModels({ deps, open, closed: { outbound } }: Ground, vaultGroup: VaultGroup) {
  const { activity } = open;
  const { vault } = vaultGroup.closed;
  const { secretReads } = vaultGroup.open;
  const usage = new ModelUsageService(deps);
  return {
    open: {
      models: new LogicalModelService({ ...deps, dependents: [modelDependents, embeddingModelDependents] }),
      modelEntitlements: new ModelEntitlementService(deps),
      modelRouting: new ModelRoutingService({ ...deps, activity }),
      modelUsage: usage,
      providerAccounts: new ProviderAccountService({ ...deps, vault, secretReads }),
    },
    closed: { embeddings: new Embeddings({ sql: deps.sql, activity, vault, outbound, usage }) },
  };
}
