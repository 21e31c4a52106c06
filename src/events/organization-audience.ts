import type { Access } from '../access/access.ts';
import type { Actor } from '../access/caller.ts';
import type { Grant } from '../access/permissions.ts';
import { isPermission } from '../access/scopes.ts';
import { ApiError } from '../core/errors.ts';
import { declarationOf, isResourceWord, type Permission } from '../core/resources.ts';
import type { StreamEvent } from '../data/outbox.ts';
import type { Sql } from '../data/sql.ts';

/**
 * The permission to read what an event of an organization is about. `null` if nobody receives the event: it is not
 * about a resource, or about one below the organization, or about one without such a permission.
 */
function rightToRead(word: string): Permission | null {
  if (!isResourceWord(word)) return null;
  if (word === 'organization') return 'organization:access';
  const { in: places } = declarationOf(word);
  const permission = `${word}:read`;
  return (places === 'organization' || places === 'anywhere') && isPermission(permission) ? permission : null;
}

const OWNER = `select created_by_user_id as "userId" from api_tokens where org_id = $1 and id = $2`;

/**
 * Who receives the events of an organization: callers who may read the resource of the event, checked for each event.
 */
export class OrganizationAudience {
  readonly #access: Access;
  readonly #sql: Sql;
  /** The owners of API tokens by event, read once for all streams. */
  readonly #owners = new WeakMap<StreamEvent, Promise<string | null>>();

  constructor(access: Access, sql: Sql) {
    this.#access = access;
    this.#sql = sql;
  }

  /** @throws the database's own errors */
  mayReceive(actor: Actor, event: StreamEvent): boolean | Promise<boolean> {
    const permission = rightToRead(event.resourceType);
    if (event.workspaceId !== null) return false;
    if (event.resourceType === 'workspace') return this.#mayReceiveWorkspace(actor, event);
    if (!permission) return false;
    if (event.resourceType === 'api_token') return this.#mayReceiveToken(actor, event, permission);
    return this.#may(actor, event, permission);
  }

  /** A new workspace is told to those who may read it. */
  #mayReceiveWorkspace(actor: Actor, { orgId, resourceId }: StreamEvent): boolean | Promise<boolean> {
    return isGranted(() => this.#access.requireWorkspace(actor, orgId, resourceId, 'workspace:read'));
  }

  /**
   * Like the lists of API tokens: the caller's own, or all for those who manage them; never with the token of an app.
   */
  async #mayReceiveToken(actor: Actor, event: StreamEvent, permission: Permission): Promise<boolean> {
    const { token, userId } = actor.principal;
    if (token?.appId || !(await this.#may(actor, event, permission))) return false;
    return (await this.#may(actor, event, 'api_token:manage')) || (await this.#ownerOf(event)) === userId;
  }

  #may(actor: Actor, event: StreamEvent, permission: Permission): boolean | Promise<boolean> {
    return isGranted(() => this.#access.requireOrganization(actor, event.orgId, permission, event));
  }

  #ownerOf(event: StreamEvent): Promise<string | null> {
    const known = this.#owners.get(event);
    if (known) return known;
    const owner = this.#sql
      .read<{ userId: string }>(OWNER, [event.orgId, event.resourceId])
      .then(([row]) => row?.userId ?? null);
    this.#owners.set(event, owner);
    return owner;
  }
}

function isGranted(demand: () => Grant | Promise<Grant>): boolean | Promise<boolean> {
  try {
    const grant = demand();
    return grant instanceof Promise ? grant.then((given) => given === 'all', refused) : grant === 'all';
  } catch (error) {
    return refused(error);
  }
}

/** @throws errors that are not refusals */
function refused(error: unknown): false {
  if (error instanceof ApiError) return false;
  throw error;
}
