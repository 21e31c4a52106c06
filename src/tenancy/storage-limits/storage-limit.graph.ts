import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { organizationArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { Organization } from '../organizations/organization.graph.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';
import type { StorageUse } from './storage-limit.service.ts';

const StorageType = builder.objectRef<StorageUse>('Storage').implement({
  description: 'What the artifacts of a workspace or an organization hold, and what they may hold.',
  fields: (t) => ({
    usedBytes: t.expose('usedBytes', {
      type: 'Int53',
      description:
        'Bytes that artifacts hold: files and texts, with all versions. Deleted and expired artifacts count until ' +
        'they are removed for good. An upload under way counts with the length that it announced, or with what has ' +
        'arrived.',
    }),
    limitBytes: t.expose('limitBytes', {
      type: 'Int53',
      nullable: true,
      description: 'The most that artifacts may hold. What would hold more is refused. `null` for no limit.',
    }),
    ownLimitBytes: t.expose('ownLimitBytes', {
      type: 'Int53',
      nullable: true,
      description: 'The limit that was set for this place. `null` where the setting of the operator applies.',
    }),
  }),
});

builder.objectField(Workspace, 'storage', (t) =>
  t.field({
    type: StorageType,
    nullable: true,
    description: 'The storage of its artifacts. `null` for tokens that are restricted to a part of it.',
    authorize: { workspace: 'analytics:read' },
    resolve: (row, _args, context) => context.services.storageLimits.workspaceBelow(context, row),
  }),
);

builder.objectField(Organization, 'storage', (t) =>
  t.field({
    type: StorageType,
    nullable: true,
    description:
      'The storage of all its artifacts, also of those in deleted workspaces until these are removed. `null` for ' +
      'callers who do not administer it, and for tokens that are restricted to a part of it.',
    authorize: { organization: 'organization:access', service: 'analytics:read' },
    resolve: (row, _args, context) => context.services.storageLimits.organizationBelow(context, row),
  }),
);

builder.queryFields((t) => ({
  workspaceStorage: t.field({
    type: StorageType,
    description: 'The storage of a workspace. Refused to tokens that are restricted to a part of it.',
    authorize: { workspace: 'analytics:read' },
    args: workspaceArgs(),
    resolve: ({ workspace }, _args, { caller, services }) => services.storageLimits.ofWorkspace(caller, workspace),
  }),
  organizationStorage: t.field({
    type: StorageType,
    description:
      'The storage of an organization, for its administrators. Refused to tokens that are restricted to a part of it.',
    authorize: { organization: 'organization:access', service: 'analytics:read' },
    args: organizationArgs(),
    resolve: ({ organization }, _args, { caller, services }) =>
      services.storageLimits.ofOrganization(caller, organization),
  }),
}));

const UpdateStorageInput = builder.inputType('UpdateStorageInput', {
  description: 'The limit of the storage of a place.',
  fields: (t) => ({
    limitBytes: t.field({
      type: 'Int53',
      constraints: { min: 1, max: Number.MAX_SAFE_INTEGER },
      description:
        'The most bytes that artifacts may hold. A limit below what they hold removes nothing and refuses new bytes. ' +
        '`null` applies the setting of the operator.',
    }),
  }),
});

builder.mutationFields((t) => ({
  updateWorkspaceStorage: t.field({
    type: StorageType,
    description:
      'Sets how much the artifacts of a workspace may hold. Administrators of its organization set it: at most the ' +
      'setting of the operator, or the own limit of the organization if that is more.',
    authorize: { organization: 'organization:update' },
    activity: { action: 'update', resourceType: 'workspace' },
    emits: ['workspace.updated'],
    args: { ...workspaceArgs(), ...inputArg(UpdateStorageInput, 'The limit.') },
    resolve: ({ organization }, { workspaceId, input }, { caller, services }) =>
      services.storageLimits.updateWorkspace(caller, organization, workspaceId, input),
  }),
  updateOrganizationStorage: t.field({
    type: StorageType,
    description:
      'Sets how much the artifacts of an organization may hold. Administrators of the platform set it, also of ' +
      'organizations that they are not in.',
    authorize: { session: 'organization:update' },
    activity: { action: 'update', resourceType: 'organization' },
    emits: ['organization.updated'],
    args: { ...organizationArgs(), ...inputArg(UpdateStorageInput, 'The limit.') },
    resolve: (_root, { orgId, input }, { caller, services }) =>
      services.storageLimits.updateOrganization(caller, orgId, input),
  }),
}));
