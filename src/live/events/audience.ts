import type { Access } from '../../access/access.ts';
import type { StreamEvent } from '../../data/outbox.ts';
import type { Sql } from '../../data/sql.ts';
import { TOKEN_OWNER } from '../../identity/views.ts';
import type { Caller } from '../../kernel/caller.ts';
import { isRefusal } from '../../kernel/errors.ts';
import { isOn, wordOf } from '../../kernel/event-types.ts';
import { type PlaceKind, placesOf, type ResourceWord } from '../../kernel/resources.ts';
import { isRestricted, type TokenGrant } from '../../kernel/token-grant.ts';

/** The property of an event that names a place of each kind. */
const PLACE_IDS = {
  organization: 'orgId',
  workspace: 'workspaceId',
  namespace: 'namespaceId',
  environment: 'environmentId',
  app: 'appId',
} as const satisfies Record<PlaceKind, keyof StreamEvent>;

/** Not a promise if everything is cached. */
type MaybePromise<T> = T | Promise<T>;

/**
 * Who receives events: callers who may read the resource of an event in its place, by the rights that they have when it
 * is sent. It is the same for streams of workspaces and of organizations, for events of the past and new ones.
 */
export class Audience {
  readonly #access: Access;
  readonly #sql: Sql;
  /** The owners of API tokens by event, read once for all streams. */
  readonly #owners = new WeakMap<StreamEvent, Promise<string | null>>();
  /** Events without what some of their readers may not see: one for all of them. */
  readonly #reduced = new WeakMap<StreamEvent, StreamEvent>();

  constructor(access: Access, sql: Sql) {
    this.#access = access;
    this.#sql = sql;
  }

  /**
   * What a caller receives of an event; `null` if it is not for the caller.
   * @throws the database's own errors
   */
  shown(caller: Caller, event: StreamEvent): MaybePromise<StreamEvent | null> {
    const received = this.#mayReceive(caller, event);
    const isViewing = event.type === 'presence.viewing';
    if (received instanceof Promise)
      return received.then((yes) => (yes && isViewing ? this.#viewing(caller, event) : yes ? event : null));
    if (!received) return null;
    return isViewing ? this.#viewing(caller, event) : event;
  }

  #mayReceive(caller: Caller, event: StreamEvent): MaybePromise<boolean> {
    const { type, resourceType, recipientId, workspaceId } = event;
    const { token, userId } = caller.principal;
    const word = wordOf(type);
    // what contradicts the table is a mistake, and for nobody
    if (!word || word !== resourceType || !isOn(workspaceId === null ? 'organization' : 'workspace', word, type))
      return false;
    // a notification is always somebody's own
    if (recipientId === null ? word === 'notification' : recipientId !== userId) return false;
    if (token && isRestricted(token) && !namesItsPlaces(event)) return false;
    if (word === 'workspace' && workspaceId === null) return this.#mayReceiveWorkspace(caller, event);
    const may = this.#access.maySee(caller, word, event);
    return word === 'api_token' ? and(may, () => this.#mayReceiveToken(caller, event, token)) : may;
  }

  /** Of a new workspace the organization tells those who may read it. */
  async #mayReceiveWorkspace(caller: Caller, { orgId, resourceId }: StreamEvent): Promise<boolean> {
    try {
      await this.#access.requireWorkspace(caller, orgId, resourceId, 'workspace:read');
      return true;
    } catch (error) {
      if (isRefusal(error)) return false;
      throw error;
    }
  }

  /**
   * Like the lists of API tokens: the caller's own, or all for those who manage them; never with the token of an app.
   */
  async #mayReceiveToken(caller: Caller, event: StreamEvent, token: TokenGrant | null): Promise<boolean> {
    if (token?.appId) return false;
    return (
      (await this.#access.permits(caller, 'api_token:manage', event)) ||
      (await this.#ownerOf(event)) === caller.principal.userId
    );
  }

  /** What somebody looks at is told to those who may read it; what it was before, to those who may read that. */
  async #viewing(caller: Caller, event: StreamEvent): Promise<StreamEvent | null> {
    const { resource_type: word, previous } = event.data as unknown as Viewing;
    if (!(await this.#access.maySee(caller, word, event))) return null;
    const seesAll = !previous || (await this.#access.maySee(caller, previous.resource_type, event));
    return seesAll ? event : this.#withoutPrevious(event);
  }

  #withoutPrevious(event: StreamEvent): StreamEvent {
    const known = this.#reduced.get(event);
    if (known) return known;
    const reduced = { ...event, data: { ...event.data, previous: null } };
    this.#reduced.set(event, reduced);
    return reduced;
  }

  #ownerOf(event: StreamEvent): Promise<string | null> {
    const known = this.#owners.get(event);
    if (known) return known;
    const owner = this.#sql
      .read<{ userId: string }>(TOKEN_OWNER, [event.orgId, event.resourceId])
      .then(([row]) => row?.userId ?? null);
    this.#owners.set(event, owner);
    return owner;
  }
}

/** The details of `presence.viewing`. What was looked at before is in the same place. */
interface Viewing {
  resource_type: ResourceWord;
  previous: { resource_type: ResourceWord } | null;
}

const and = (first: MaybePromise<boolean>, second: () => MaybePromise<boolean>): MaybePromise<boolean> =>
  first instanceof Promise ? first.then((yes) => yes && second()) : first && second();

/** A restricted token receives no events that do not name the places that their resource is always in. */
const namesItsPlaces = (event: StreamEvent): boolean =>
  placesOf(event.resourceType)?.every((kind) => event[PLACE_IDS[kind]]) ?? false;
