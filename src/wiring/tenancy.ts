import { demandEmbeddingModel } from '../models/embeddings/embedding-choice.ts';
import { AppService } from '../tenancy/apps/app.service.ts';
import { NamespaceService } from '../tenancy/namespaces/namespace.service.ts';
import { InvitationService } from '../tenancy/organizations/invitation.service.ts';
import { OrganizationService } from '../tenancy/organizations/organization.service.ts';
import { OrganizationMemberService } from '../tenancy/organizations/organization-member.service.ts';
import { StorageLimitService } from '../tenancy/storage-limits/storage-limit.service.ts';
import { StorageLimits } from '../tenancy/storage-limits/storage-limits.ts';
import { UserReads } from '../tenancy/users/user.reads.ts';
import { Buckets } from '../tenancy/workspaces/buckets.ts';
import { DeletedWorkspaceService } from '../tenancy/workspaces/deleted-workspace.service.ts';
import { WorkspaceService } from '../tenancy/workspaces/workspace.service.ts';
import { WorkspaceMemberService } from '../tenancy/workspaces/workspace-member.service.ts';
import type { Ground } from './ground.ts';

export type Tenancy = ReturnType<typeof createTenancy>;

/** Organizations, workspaces, namespaces and apps. */
export function createTenancy({ config, deps, removals, mailBudgets, closed: { storage, mail } }: Ground) {
  return {
    storageBudget: new StorageLimits(config),
    open: {
      organizations: new OrganizationService({ ...deps, config, removals }),
      organizationMembers: new OrganizationMemberService({ ...deps, removals }),
      invitations: new InvitationService({ ...deps, mail, mailBudgets }),
      userReads: new UserReads(deps),
      workspaces: new WorkspaceService({ ...deps, demandEmbeddingModel }),
      deletedWorkspaces: new DeletedWorkspaceService(deps),
      workspaceMembers: new WorkspaceMemberService(deps),
      namespaces: new NamespaceService({ ...deps, removals }),
      apps: new AppService({ ...deps, removals }),
      storageLimits: new StorageLimitService({ ...deps, config }),
    },
    closed: { buckets: new Buckets({ sql: deps.sql, changes: deps.changes, storage }) },
  };
}
