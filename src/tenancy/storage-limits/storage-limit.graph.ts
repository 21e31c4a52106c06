import { builder } from '../../graphql/builder.ts';
import { inputArg } from '../../graphql/inputs.ts';
import { organizationArgs, workspaceArgs } from '../../graphql/place-args.ts';
import { Organization } from '../organizations/organization.graph.ts';
import { Workspace } from '../workspaces/workspace.graph.ts';
import type { StorageUse } from './storage-limit.service.ts';

const StorageType = builder.objectRef<StorageUse>('Storage').implement({
  description: 'Storage of the artifacts of a workspace or an organization: the bytes in use, and the limit.',
  fields: (t) => ({
    usedBytes: t.expose('usedBytes', {
      type: 'Int53',
      description:
        'Bytes of all files and texts of artifacts, with all versions. Deleted and expired artifacts count until ' +
        'they are removed for good. An unfinished upload counts with its announced length, or else with the bytes ' +
        'that have arrived.',
    }),
    limitBytes: t.expose('limitBytes', {
      type: 'Int53',
      nullable: true,
      description:
        'Maximum number of bytes of the artifacts. A change that would exceed it is refused. `null` for no limit.',
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
      'The storage of all its artifacts, including artifacts in deleted workspaces until these are removed. ' +
      '`null` for callers who do not administer the organization, and for tokens that are restricted to a part of ' +
      'it.',
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
        'Maximum number of bytes of the artifacts. A limit below the current use removes nothing and refuses new ' +
        "bytes. `null` applies the operator's setting.",
    }),
  }),
});

builder.mutationFields((t) => ({
  updateWorkspaceStorage: t.field({
    type: StorageType,
    description:
      "Sets the storage limit of a workspace. Administrators of its organization may set it, up to the operator's " +
      "setting or the organization's own limit, whichever is higher.",
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
      'Sets the storage limit of an organization. Only administrators of the platform may set it, for any ' +
      'organization.',
    authorize: { session: 'organization:update' },
    activity: { action: 'update', resourceType: 'organization' },
    emits: ['organization.updated'],
    args: { ...organizationArgs(), ...inputArg(UpdateStorageInput, 'The limit.') },
    resolve: (_root, { orgId, input }, { caller, services }) =>
      services.storageLimits.updateOrganization(caller, orgId, input),
  }),
}));
