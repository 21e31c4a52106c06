import './scalars.ts';
import '../apps/app.graph.ts';
import '../auth/auth.graph.ts';
import '../environments/deployment.graph.ts';
import '../environments/environment.graph.ts';
import '../connections/connection.graph.ts';
import '../events/event.graph.ts';
import '../models/logical-model.graph.ts';
import '../model-entitlements/model-entitlement.graph.ts';
import '../models/model-routing.graph.ts';
import '../models/model-usage.graph.ts';
import '../provider-accounts/provider-account.graph.ts';
import '../namespaces/namespace.graph.ts';
import '../organizations/invitation.graph.ts';
import '../organizations/organization.graph.ts';
import '../organizations/organization-member.graph.ts';
import '../releases/release.graph.ts';
import '../secrets/secret.graph.ts';
import '../threads/thread.graph.ts';
import '../tools/tool.graph.ts';
import '../api-tokens/api-token.graph.ts';
import '../api-tokens/app-token.graph.ts';
import '../users/user.graph.ts';
import '../workspaces/workspace.graph.ts';
import '../workspaces/workspace-member.graph.ts';
import { builder } from './builder.ts';

/** The schema: the product. Each resource's `.graph.ts` is named above; a test fails when one is forgotten. */
export const schema = builder.toSchema({ sortSchema: false });
