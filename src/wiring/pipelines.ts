import { ActionService } from '../pipelines/actions/action.service.ts';
import { AugmentationService } from '../pipelines/augmentations/augmentation.service.ts';
import { EndpointService } from '../pipelines/endpoints/endpoint.service.ts';
import { ExecutionService } from '../pipelines/executions/execution.service.ts';
import { OrganizationRecipeService } from '../pipelines/organization-recipes/organization-recipe.service.ts';
import { MissingPartsService } from '../pipelines/recipes/missing-parts.service.ts';
import { RecipeService } from '../pipelines/recipes/recipe.service.ts';
import { WorkspaceDocumentService } from '../pipelines/workspace-documents/workspace-document.service.ts';
import type { Ground } from './ground.ts';
import type { VaultGroup } from './vault.ts';

/** Augmentations, endpoints, actions, executions and recipes. */
export function createPipelines({ deps, config }: Ground, { closed: { vault }, open: { secretReads } }: VaultGroup) {
  const recipes = new RecipeService(deps);
  return {
    open: {
      augmentations: new AugmentationService(deps),
      endpoints: new EndpointService(deps),
      actions: new ActionService(deps),
      executions: new ExecutionService({ ...deps, config }),
      missingParts: new MissingPartsService(deps),
      recipes,
      organizationRecipes: new OrganizationRecipeService({ ...deps, recipes }),
      workspaceDocuments: new WorkspaceDocumentService({ ...deps, vault, secretReads }),
    },
    closed: {},
  };
}
