import type { Role } from './roles.ts';

/** Kinds of places that contain resources. A token may be restricted to some places of a kind. */
export const placeKinds = ['organization', 'workspace', 'namespace', 'environment', 'app'] as const;
export type PlaceKind = (typeof placeKinds)[number];

/**
 * How a token gets a permission:
 * - `plain`: granted by wildcards, and by default when a token lists nothing.
 * - `sensitive`: manages people, tokens or sign-in, deletes the tenant, or reveals secrets. A token must name it: by
 *   itself, by its resource, or by `admin`; a read also by wildcards for reads. `write`, `*:create` and the like do not
 *   grant it, nor does a token that lists nothing. Members of the organization and invitations are sensitive like
 *   members of a workspace: a caller who may add a person could become any of them.
 * - `minting`: creates tokens, or what gets tokens by itself. Not even `admin` grants it: a token must name it by
 *   itself or by its resource, and an application never gets it.
 */
export type Weight = 'plain' | 'sensitive' | 'minting';

/** Who has a permission. */
export interface PermissionRule {
  /**
   * The least role that has it for everything. `null`: no role in a workspace grants it, only a role in its
   * organization.
   */
  from: Role | null;
  /** The least role that has it for what the user created, if that is a lower role. */
  ownFrom?: Role;
  /** For a permission in a workspace: the least role in the organization that also grants it. */
  organizationFrom?: Role;
  /** `plain` by default. */
  weight?: Weight;
}

/** The declaration of a resource. */
interface Resource {
  /** The prefix of its identifiers. Absent if it has no identifiers of its own. */
  prefix?: string;
  /**
   * Where it is: always in a place of each of these kinds; a place is in itself. `anywhere`: it may name a place of any
   * kind, or none. `nowhere`: it belongs to no tenant.
   */
  in: PlaceKind | readonly PlaceKind[] | 'anywhere' | 'nowhere';
  /** The argument that names it in operations. Default `id`. */
  knownBy?: string;
  /** Its permissions, by verb. */
  may?: Readonly<Record<string, Role | PermissionRule>>;
  /** The permission that lets read it, and receive its events. Default: its own `read`. */
  readWith?: `${string}:${string}`;
  /** The names of its events: `created` for `<resource>.created`. */
  events?: readonly string[];
}

const sensitive = <From extends Role>(from: From) => ({ from, weight: 'sensitive' }) as const satisfies PermissionRule;
const minting = <From extends Role>(from: From) => ({ from, weight: 'minting' }) as const satisfies PermissionRule;
const ownOr = <Own extends Role, From extends Role>(ownFrom: Own, from: From) =>
  ({ from, ownFrom }) as const satisfies PermissionRule;
/** Only a role in the organization grants it. */
const inOrganization = <From extends Role>(from: From) =>
  ({ from: null, organizationFrom: from }) as const satisfies PermissionRule;

const editable = ['created', 'updated', 'deleted'] as const;
const issued = ['created', 'refreshed', 'revoked', 'expiring'] as const;

/**
 * THE list of resource words. Identifiers, permissions, token scopes, the audience of events, and the words of errors,
 * activity and events derive from it: a resource is named here and nowhere else. Permissions on what is directly in an
 * organization depend on the role there, the others on the role in the workspace.
 */
export const resources = {
  organization: {
    prefix: 'org',
    in: 'organization',
    may: { access: 'viewer', update: 'admin', delete: sensitive('owner') },
    readWith: 'organization:access',
    events: editable,
  },
  organization_member: {
    prefix: 'om',
    in: 'organization',
    knownBy: 'userId',
    may: {
      read: sensitive('viewer'),
      create: sensitive('admin'),
      update: sensitive('admin'),
      delete: sensitive('admin'),
    },
    events: editable,
  },
  invitation: {
    prefix: 'inv',
    in: 'organization',
    may: {
      read: sensitive('admin'),
      create: sensitive('admin'),
      update: sensitive('admin'),
      delete: sensitive('admin'),
    },
    events: ['created', 'updated', 'revoked', 'accepted'],
  },
  identity_provider: {
    prefix: 'idp',
    in: 'organization',
    may: {
      read: sensitive('admin'),
      create: sensitive('admin'),
      update: sensitive('admin'),
      delete: sensitive('admin'),
    },
    events: editable,
  },
  user: {
    prefix: 'usr',
    in: 'nowhere',
    may: { read: 'viewer', create: sensitive('admin'), update: sensitive('admin'), delete: sensitive('admin') },
  },
  workspace: {
    prefix: 'ws',
    in: 'workspace',
    may: { read: 'viewer', create: 'admin', update: 'admin', delete: { from: 'owner', organizationFrom: 'admin' } },
    events: [...editable, 'restored', 'imported'],
  },
  workspace_member: {
    prefix: 'wm',
    in: 'workspace',
    knownBy: 'userId',
    may: {
      read: sensitive('viewer'),
      create: sensitive('admin'),
      update: sensitive('admin'),
      delete: sensitive('admin'),
    },
    events: editable,
  },
  namespace: {
    prefix: 'ns',
    in: 'namespace',
    may: { read: 'viewer', create: 'editor', update: 'editor', delete: 'editor' },
    events: editable,
  },
  app: {
    prefix: 'app',
    in: 'app',
    may: { read: 'viewer', create: 'editor', update: 'editor', delete: 'editor' },
    events: editable,
  },
  release: {
    prefix: 'rls',
    in: 'app',
    may: { read: 'viewer', create: 'editor', delete: 'editor' },
    events: ['created', 'deleted'],
  },
  augmentation: {
    prefix: 'aug',
    in: 'app',
    may: { read: 'viewer', create: 'editor', update: 'editor', delete: 'editor' },
    events: editable,
  },
  endpoint: {
    prefix: 'ep',
    in: 'app',
    may: { read: 'viewer', create: 'editor', update: 'editor', delete: 'editor' },
    events: editable,
  },
  action: {
    prefix: 'actn',
    in: 'app',
    may: { read: 'viewer', create: 'editor', update: 'editor', delete: 'editor' },
    events: [...editable, 'fired'],
  },
  // known by the identifier that its runner gave it
  execution: {
    prefix: 'exec',
    in: 'app',
    knownBy: 'executionId',
    may: { read: 'viewer', create: 'editor' },
    events: ['started', 'stage_completed', 'completed', 'failed'],
  },
  thread: {
    prefix: 'thr',
    in: 'namespace',
    may: { read: 'viewer', create: 'member', update: ownOr('member', 'editor'), delete: ownOr('member', 'editor') },
    events: editable,
  },
  artifact: {
    prefix: 'art',
    in: 'namespace',
    may: {
      read: 'viewer',
      create: 'member',
      update: ownOr('member', 'editor'),
      delete: ownOr('member', 'editor'),
      promote: 'editor',
    },
    events: [...editable, 'restored', 'version_created', 'promoted', 'indexed', 'index_failed', 'expired'],
  },
  source: {
    prefix: 'src',
    in: 'workspace',
    may: { read: 'viewer', create: 'editor', update: 'editor', delete: 'editor' },
    events: editable,
  },
  secret: {
    prefix: 'sec',
    in: 'anywhere',
    may: {
      read: 'member',
      reveal: sensitive('admin'),
      create: 'editor',
      update: 'editor',
      rotate: 'editor',
      delete: 'editor',
      destroy: sensitive('admin'),
    },
    events: ['created', 'updated', 'rotated', 'deleted', 'restored', 'destroyed', 'expiring'],
  },
  api_token: {
    prefix: 'tok',
    in: 'organization',
    may: {
      read: sensitive('viewer'),
      create: minting('viewer'),
      revoke: sensitive('viewer'),
      manage: sensitive('admin'),
    },
    events: issued,
  },
  // its identifiers are those of tokens
  app_token: {
    in: 'app',
    may: { read: sensitive('editor'), create: minting('editor'), revoke: sensitive('editor') },
    events: issued,
  },
  environment: {
    prefix: 'env',
    in: 'environment',
    may: { read: 'viewer', create: 'admin', update: 'admin', delete: 'admin' },
    events: editable,
  },
  deployment: {
    prefix: 'dep',
    in: ['environment', 'app'],
    may: { create: 'editor', delete: 'editor' },
    readWith: 'environment:read',
    events: ['created', 'rolled_back', 'removed'],
  },
  model: {
    prefix: 'mdl',
    in: 'organization',
    knownBy: 'logicalModelId',
    may: { read: 'viewer', create: 'admin', update: 'admin', delete: 'admin', execute: 'member' },
    events: editable,
  },
  provider_account: {
    prefix: 'pa',
    in: 'organization',
    may: { read: 'editor', create: 'admin', update: 'admin', delete: 'admin' },
    events: [...editable, 'degraded'],
  },
  model_entitlement: {
    prefix: 'ment',
    in: 'workspace',
    knownBy: 'logicalModelId',
    may: {
      read: 'viewer',
      create: inOrganization('admin'),
      update: inOrganization('admin'),
      delete: inOrganization('admin'),
    },
    events: editable,
  },
  tool: {
    prefix: 'tool',
    in: 'organization',
    may: { read: 'viewer', create: 'admin', update: 'admin', delete: 'admin' },
    events: editable,
  },
  tool_instance: {
    prefix: 'ti',
    in: 'workspace',
    may: {
      read: 'viewer',
      create: 'member',
      update: ownOr('member', 'editor'),
      delete: ownOr('member', 'editor'),
      execute: 'member',
    },
    events: [...editable, 'toggled', 'upgraded'],
  },
  // an execution of an action of a tool instance, by whose identifier it is known
  tool_action: { in: 'workspace', readWith: 'tool_instance:read', events: ['executed', 'failed'] },
  // a member may connect the instances that the member created; who takes the credential out may do all it can
  connection: {
    prefix: 'conn',
    in: 'workspace',
    may: {
      read: 'viewer',
      create: ownOr('member', 'editor'),
      delete: ownOr('member', 'editor'),
      use: sensitive('admin'),
    },
    events: [...editable, 'needs_reauth'],
  },
  // an entity belongs to an app and to a namespace of the same workspace
  entity: {
    prefix: 'ent',
    in: ['namespace', 'app'],
    may: { read: 'viewer', create: 'member', update: 'member', delete: 'editor' },
    events: [...editable, 'related', 'unrelated', 'imported', 'merged'],
  },
  memory: {
    prefix: 'mem',
    in: ['namespace', 'app'],
    may: { read: 'viewer', create: 'member', update: 'member', delete: 'editor' },
    events: editable,
  },
  // to apply a recipe makes an app in a workspace; those of the catalogue are the same everywhere
  recipe: {
    in: 'workspace',
    may: { read: 'viewer', apply: 'editor', export: 'editor' },
    events: ['applied'],
  },
  organization_recipe: {
    prefix: 'rcp',
    in: 'organization',
    may: { read: 'viewer', create: 'editor', update: 'editor', delete: 'editor' },
    events: editable,
  },
  sync: { in: 'workspace', may: { subscribe: 'viewer' } },
  // of a user, by whose identifier it is known
  presence: {
    in: 'workspace',
    knownBy: 'userId',
    may: { update: 'viewer' },
    readWith: 'sync:subscribe',
    events: ['joined', 'left', 'viewing'],
  },
  // of a place; those of an organization are for its administrators
  analytics: { in: 'organization', may: { read: 'viewer' } },
  // everybody reads their own records
  activity: { prefix: 'act', in: 'anywhere', may: { read: ownOr('viewer', 'admin') } },
  // everybody's own; a token reads and changes those of its owner in its organization
  notification: {
    prefix: 'ntf',
    in: 'anywhere',
    may: { read: 'viewer', update: 'viewer' },
    events: ['created', 'updated', 'read', 'resolved'],
  },
  application: {
    prefix: 'apl',
    in: 'organization',
    may: {
      read: sensitive('admin'),
      // whoever decides where its answers go, or has its secret, gets the tokens of those who sign in with it
      create: minting('admin'),
      update: minting('admin'),
      delete: sensitive('admin'),
    },
    events: editable,
  },
  // users take back their own at /account
  application_grant: {
    prefix: 'gnt',
    in: 'organization',
    may: { read: sensitive('admin'), revoke: sensitive('admin') },
  },

  scim_token: {
    prefix: 'sct',
    in: 'organization',
    may: {
      read: sensitive('admin'),
      // whoever has it makes members, and ends memberships
      create: minting('admin'),
      delete: sensitive('admin'),
    },
    events: ['created', 'deleted'],
  },

  // whoever decides where it sends, or sees what it sent, reads events
  webhook: {
    prefix: 'whk',
    in: 'organization',
    may: {
      read: sensitive('admin'),
      create: sensitive('admin'),
      update: sensitive('admin'),
      delete: sensitive('admin'),
    },
    events: [...editable, 'disabled'],
  },

  // whoever decides where it sends reads all activity
  audit_stream: {
    prefix: 'aus',
    in: 'organization',
    may: {
      read: sensitive('admin'),
      create: sensitive('admin'),
      update: sensitive('admin'),
      delete: sensitive('admin'),
    },
    events: [...editable, 'disabled'],
  },

  // internal to the service
  scim_user: { prefix: 'scu', in: 'organization' },
  scim_group: { prefix: 'scg', in: 'organization' },
  // a delivery is read with its webhook
  webhook_delivery: { prefix: 'whd', in: 'organization' },
  audit_stream_delivery: { prefix: 'asd', in: 'organization' },
  session: { prefix: 'ses', in: 'nowhere' },
  passkey: { prefix: 'pky', in: 'nowhere' },
  user_credential: { prefix: 'ucr', in: 'nowhere' },
  identity_link: { prefix: 'idl', in: 'organization' },
  identity_provider_test: { prefix: 'idt', in: 'organization' },
  root_key: { prefix: 'rk', in: 'nowhere' },
  credential: { prefix: 'cred', in: 'nowhere' },
  // stages and steps are read and changed with their augmentation
  augmentation_stage: { prefix: 'stg', in: 'app' },
  augmentation_step: { prefix: 'stp', in: 'app' },
  // a version is read with its recipe, and never changes
  organization_recipe_version: { prefix: 'rcpv', in: 'organization' },
  // a relation is read and changed with its entities
  entity_relation: { prefix: 'rel', in: ['namespace', 'app'] },
  file: { prefix: 'file', in: 'nowhere' },
  event: { prefix: 'evt', in: 'anywhere' },
  // for requests that name no resource: an identifier without a known prefix, a path without a route
  node: { in: 'nowhere' },
  route: { in: 'nowhere' },
} as const satisfies Record<string, Resource>;

type ResourceTable = typeof resources;

/** A resource word, the same in errors, activity, events and permissions. */
export type ResourceWord = keyof ResourceTable;

/** A resource with identifiers of its own. */
export type IdKind = {
  [Word in ResourceWord]: ResourceTable[Word] extends { prefix: string } ? Word : never;
}[ResourceWord];

/** `resource:verb` */
export type Permission = {
  [Word in ResourceWord]: ResourceTable[Word] extends { may: infer May } ? `${Word}:${keyof May & string}` : never;
}[ResourceWord];

/** A resource that may be anywhere: only its row tells where. */
export type FreeWord = {
  [Word in ResourceWord]: ResourceTable[Word] extends { in: 'anywhere'; may: object } ? Word : never;
}[ResourceWord];

/** The names of the events of a resource. */
export type EventName<Word extends ResourceWord> = ResourceTable[Word] extends {
  events: readonly (infer Name extends string)[];
}
  ? Name
  : never;

/** `resource.happened` */
export type EventType = { [Word in ResourceWord]: `${Word}.${EventName<Word>}` }[ResourceWord];

/** The words of all resources. */
export const resourceWords = Object.keys(resources) as ResourceWord[];

/** The declaration of a resource word. */
export const declarationOf = (word: ResourceWord): Resource => resources[word];

/** The words for members of a place: their rows are known by the user. */
export const memberWords: ReadonlySet<ResourceWord> = new Set(['organization_member', 'workspace_member']);

/** Whether a text is a resource word. */
export const isResourceWord = (text: string): text is ResourceWord => Object.hasOwn(resources, text);

/** The kinds of places that a resource is always in; `null` for an unknown word and for what belongs to no tenant. */
export function placesOf(word: string): readonly PlaceKind[] | null {
  if (!isResourceWord(word)) return null;
  const { in: places } = declarationOf(word);
  if (places === 'nowhere') return null;
  if (places === 'anywhere') return [];
  return typeof places === 'string' ? [places] : places;
}
