import { builder } from '../../graphql/builder.ts';
import { App } from '../../tenancy/apps/app.graph.ts';
import { Namespace } from '../../tenancy/namespaces/namespace.graph.ts';
import { Organization } from '../../tenancy/organizations/organization.graph.ts';
import { Workspace } from '../../tenancy/workspaces/workspace.graph.ts';
import { AppAnalytics, NamespaceAnalytics, OrganizationAnalytics, WorkspaceAnalytics } from './analytics.graph.ts';

const OF_PART = '`null` for tokens that are restricted to a part of it.';

builder.objectField(Organization, 'analytics', (t) =>
  t.field({
    type: OrganizationAnalytics,
    nullable: true,
    description: `The analytics of the organization. \`null\` for callers who do not administer it. ${OF_PART}`,
    authorize: { organization: 'organization:access', service: 'analytics:read' },
    resolve: (row, _args, context) => context.services.analytics.organizationBelow(context, row),
  }),
);

builder.objectField(Workspace, 'analytics', (t) =>
  t.field({
    type: WorkspaceAnalytics,
    nullable: true,
    description: `The analytics of the workspace. ${OF_PART}`,
    authorize: { workspace: 'analytics:read' },
    resolve: (row, _args, context) => context.services.analytics.workspaceBelow(context, row),
  }),
);

builder.objectField(App, 'analytics', (t) =>
  t.field({
    type: AppAnalytics,
    nullable: true,
    description: `The analytics of the app. ${OF_PART}`,
    authorize: { workspace: 'analytics:read' },
    resolve: (row, _args, context) => context.services.analytics.appBelow(context, row),
  }),
);

builder.objectField(Namespace, 'analytics', (t) =>
  t.field({
    type: NamespaceAnalytics,
    nullable: true,
    description: `The analytics of the namespace. ${OF_PART}`,
    authorize: { workspace: 'analytics:read' },
    resolve: (row, _args, context) => context.services.analytics.namespaceBelow(context, row),
  }),
);
