import type { Role } from './roles.ts';

/** Kinds of places that things lie in. A token may be restricted to some of a kind. */
export const placeKinds = ['organization', 'workspace', 'namespace', 'environment', 'app'] as const;
export type PlaceKind = (typeof placeKinds)[number];

/**
 * How a token comes by a permission:
 * - `plain`: granted by wildcards, and by default when a token lists nothing;
 * - `sensitive`: manages people, tokens or sign-in, deletes the tenant, or shows what is locked away. It must be named:
 * by itself, by its
 *   resource, or by `admin`; a read also by wildcards for reads. Never by `write`, `*:create` and the like, or by naming nothing. Members of
 *   the organization and invitations are sensitive as members of a workspace are: who may add a person could become any of them;
 * - `minting`: makes tokens. Not even `admin` stands for it: it must be named by itself or by its resource.
 */
export type Weight = 'plain' | 'sensitive' | 'minting';

/** Who is granted a permission. */
export interface Rule {
  /**
   * The least role that may do it to everything; `null` for what no role in a workspace gives, only one in its
   * organization.
   */
  from: Role | null;
  /** The least role that may do it to what it created, where that is a lower one. */
  ownFrom?: Role;
  /** For a workspace's permission: the least role in its organization that also grants it. */
  organizationFrom?: Role;
  /** `plain` by default. */
  weight?: Weight;
}

/** What there is to say of a resource. */
interface Resource {
  /** The beginning of its identifiers. Absent where it has none of its own. */
  prefix?: string;
  /**
   * Where it lies: in a place of each of these kinds, always; a place lies in itself. `anywhere`: it names some place,
   * or none. `nowhere`: it belongs to no tenant.
   */
  in: PlaceKind | readonly PlaceKind[] | 'anywhere' | 'nowhere';
  /** The argument that names one of them in operations; `id` by default. */
  knownBy?: string;
  /** Its permissions, by verb. */
  may?: Readonly<Record<string, Role | Rule>>;
  /** What can happen to it, as its events are called: `created` for `<resource>.created`. */
  events?: readonly string[];
}

const sensitive = <From extends Role>(from: From) => ({ from, weight: 'sensitive' }) as const satisfies Rule;
const minting = <From extends Role>(from: From) => ({ from, weight: 'minting' }) as const satisfies Rule;
const ownOr = <Own extends Role, From extends Role>(ownFrom: Own, from: From) =>
  ({ from, ownFrom }) as const satisfies Rule;
/** Only a role in the organization gives it. */
const inOrganization = <From extends Role>(from: From) =>
  ({ from: null, organizationFrom: from }) as const satisfies Rule;

const editable = ['created', 'updated', 'deleted'] as const;
const issued = ['created', 'refreshed', 'revoked', 'expiring'] as const;

/**
 * THE list of resource words. Identifiers, permissions, scopes of tokens, who hears an event, and the words of errors,
 * activity and events derive from it: a resource is named here and nowhere else. Permissions of what lies in an
 * organization are judged by the role there, the others by the role in the workspace.
 */
export const resources = {
  organization: {
    prefix: 'org',
    in: 'organization',
    may: { access: 'viewer', update: 'admin', delete: sensitive('owner') },
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
  user: {
    prefix: 'usr',
    in: 'nowhere',
    may: { read: 'viewer', create: sensitive('admin'), update: sensitive('admin'), delete: sensitive('admin') },
  },
  workspace: {
    prefix: 'ws',
    in: 'workspace',
    may: { read: 'viewer', create: 'admin', update: 'admin', delete: { from: 'owner', organizationFrom: 'admin' } },
    events: editable,
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
  thread: {
    prefix: 'thr',
    in: 'namespace',
    may: { read: 'viewer', create: 'member', update: ownOr('member', 'editor'), delete: ownOr('member', 'editor') },
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
  sync: { in: 'workspace', may: { subscribe: 'viewer' } },

  // what the service keeps for itself
  session: { prefix: 'ses', in: 'nowhere' },
  root_key: { prefix: 'rk', in: 'nowhere' },
  activity: { prefix: 'act', in: 'anywhere' },
  event: { prefix: 'evt', in: 'anywhere' },
  // what a request asked for that is no resource: an identifier without a known prefix, a path without a route
  node: { in: 'nowhere' },
  route: { in: 'nowhere' },
} as const satisfies Record<string, Resource>;

type Table = typeof resources;

/** A resource word: of errors, activity, events and permissions alike. */
export type ResourceWord = keyof Table;

/** A resource with identifiers of its own. */
export type IdKind = { [Word in ResourceWord]: Table[Word] extends { prefix: string } ? Word : never }[ResourceWord];

/** `resource:verb` */
export type Permission = {
  [Word in ResourceWord]: Table[Word] extends { may: infer May } ? `${Word}:${keyof May & string}` : never;
}[ResourceWord];

/** A resource that may lie anywhere: where one lies is known by its row alone. */
export type FreeWord = {
  [Word in ResourceWord]: Table[Word] extends { in: 'anywhere'; may: object } ? Word : never;
}[ResourceWord];

/** What can happen to a resource, as its events are called. */
export type EventName<Word extends ResourceWord> = Table[Word] extends {
  events: readonly (infer Name extends string)[];
}
  ? Name
  : never;

/** `resource.happened` */
export type EventType = { [Word in ResourceWord]: `${Word}.${EventName<Word>}` }[ResourceWord];

/** The words of all resources. */
export const resourceWords = Object.keys(resources) as ResourceWord[];

/** What the table says of a resource. */
export const declarationOf = (word: ResourceWord): Resource => resources[word];

/** Whether a text is a resource word. */
export const isResourceWord = (text: string): text is ResourceWord => Object.hasOwn(resources, text);

/** The kinds of places that a resource always lies in; `null` for what is no resource, or belongs to no tenant. */
export function placesOf(word: string): readonly PlaceKind[] | null {
  if (!isResourceWord(word)) return null;
  const { in: places } = declarationOf(word);
  if (places === 'nowhere') return null;
  if (places === 'anywhere') return [];
  return typeof places === 'string' ? [places] : places;
}
