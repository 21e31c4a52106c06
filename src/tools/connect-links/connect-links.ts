import { randomToken, tokenHash } from '../../access/random-token.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { Budget } from '../../access/throttle.ts';
import type { ActivityRecorder } from '../../data/activity.ts';
import { emitChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import type { Connection, ConnectLink } from '../../generated/prisma/client.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import type { Checked, WorkspacePlace } from '../../kernel/checked-place.ts';
import { ApiError, forbidden, invalidInput, notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { Owner } from '../../kernel/owner.ts';
import type { Seal } from '../../platform/keys/seal.ts';
import type { Credentials } from '../../vault/secrets/credentials.ts';
import type { Vault } from '../../vault/secrets/vault.ts';
import { demandKeys } from '../connections/connection.service.ts';
import { connected } from '../connections/connection-changes.ts';
import type { ConnectionRemoval } from '../connections/connection-removal.ts';
import type { AuthType } from '../connections/connection-state.ts';
import {
  type ConnectionTarget,
  clientOf,
  clientReferenceOf,
  findTarget,
  serviceOf,
} from '../connections/connection-target.ts';
import { issuerFault } from '../connections/issuer.ts';
import { type OAuthGrant, type OAuthProvider, ProviderRefusal } from '../connections/oauth-provider.ts';
import { isOfOwnClient, newState } from '../connections/oauth-states.ts';
import { returnOf } from '../connections/own-client.ts';
import { keyOf, type StoredCredential, tokensOf } from '../connections/stored-credential.ts';
import { endOpenLinks, isOf, isOpen, mayCollect, type OpenLink, type OpenLinks } from './open-links.ts';
import { returning } from './return-address.ts';

/** Seconds that a link lives. */
export const LINK_SECONDS = 1_800;
/** Links that one user may make: an app makes one for each end user who connects. */
const LINKS_PER_MINUTE = 120;
/** What comes from one address: pages, beginnings and ends. */
const STEPS_PER_MINUTE = 120;
/** Authorizations and keys of one link, each of which asks somebody else or is stored. */
const TRIES_PER_LINK = 20;
const STEERED = 'The instance says itself where credentials go: only who may take them out asks end users for theirs.';
const ANY_KEY = { lifetime: null, refreshToken: null, scopes: null, accountLabel: null };

/** For whom a link is, as the app says it. */
export interface CreateConnectLink {
  endUserId: string;
  name?: string | null;
  email?: string | null;
  returnTo?: string | null;
}

/** A link that was made. Its address is shown this once. */
export interface IssuedConnectLink {
  orgId: string;
  url: string;
  expiresAt: Date;
  toolInstanceId: string;
  endUserId: string;
}

/** How a try to connect ended, for the app that the browser goes back to. */
export interface ConnectEnd {
  status: 'connected' | 'denied' | 'failed';
  /** Where the browser goes; `null` if it stays on the page of the service. */
  returnTo: string | null;
  toolName: string;
}

interface ConnectLinkDeps extends ServiceDeps {
  credentials: Credentials;
  vault: Vault;
  provider: OAuthProvider;
  removal: ConnectionRemoval;
  links: OpenLinks;
  activity: ActivityRecorder;
  seal: Seal;
  publicUrl: () => string;
}

/** How an end user connects: a tool with an OAuth service takes no keys, unless the instance says so. */
export function authTypeOf({ instance, tool }: ConnectionTarget): AuthType {
  return serviceOf(tool) && instance.authMode !== 'api_key' ? 'oauth2' : 'api_key';
}

/** The scopes that an authorization at an instance asks for. */
export function scopesOf({ instance, tool }: ConnectionTarget): readonly string[] {
  return instance.scopesOverride.length > 0 ? instance.scopesOverride : (serviceOf(tool)?.scopes ?? []);
}

/**
 * Links at which end users of an app connect accounts of theirs. A link is good for half an hour, and for one
 * connection; the first browser that goes on with it is the only one that may (docs/decisions/0092).
 */
export class ConnectLinks implements Owner {
  readonly retention = [`delete from connect_links where expires_at < now() - interval '1 day'`];
  readonly #deps: ConnectLinkDeps;
  readonly #made: Budget;
  readonly #steps: Budget;
  readonly #tries: Budget;

  constructor(deps: ConnectLinkDeps) {
    this.#deps = deps;
    this.#made = deps.budgets.of('connect_links', LINKS_PER_MINUTE, 60);
    this.#steps = deps.budgets.of('connect_link_steps', STEPS_PER_MINUTE, 60);
    this.#tries = deps.budgets.of('connect_link_tries', TRIES_PER_LINK, LINK_SECONDS);
  }

  /**
   * Makes a link for an end user. Their earlier links end.
   * @throws RESOURCE_NOT_FOUND `tool_instance`; FORBIDDEN for an instance of others, and `connection:use` for one that
   * says where credentials are sent; InputError at `returnTo`;
   * RESOURCE_CONFLICT if the tool takes neither OAuth nor keys, or the instance has no client; RATE_LIMIT_EXCEEDED
   */
  async create(
    caller: Caller,
    place: Checked<WorkspacePlace>,
    toolInstanceId: string,
    input: CreateConnectLink,
  ): Promise<IssuedConnectLink> {
    const { sql, access, changes, publicUrl } = this.#deps;
    const { orgId, workspaceId } = place;
    const target = await findTarget(sql, orgId, toolInstanceId);
    if (target?.instance.workspaceId !== workspaceId) throw notFound('tool_instance', toolInstanceId);
    const { instance, tool } = target;
    access.demandCovers(caller, place.asked.grant, place.asked.permission, instance.createdBy);
    if (!(await mayCollect(access, caller, target))) throw forbidden('connection:use', STEERED);
    if (authTypeOf(target) === 'oauth2') clientReferenceOf(target);
    else demandKeys(tool, toolInstanceId);
    const { endUserId, returnTo = null } = input;
    if (returnTo !== null && !instance.returnAddresses.includes(returnTo))
      throw invalidInput(['input', 'returnTo'], 'the instance does not allow this return address');
    const { userId, token } = caller.principal;
    await this.#made.demand(userId);
    const secret = randomToken();
    const expiresAt = new Date(Date.now() + LINK_SECONDS * 1_000);
    await changes.run(caller, async (tx) => {
      tx.write(endOpenLinks(toolInstanceId, endUserId));
      tx.demand('tool_instances', { id: toolInstanceId }, 'key share', () => notFound('tool_instance', toolInstanceId));
      tx.insert('connect_links', {
        hash: tokenHash(secret),
        orgId,
        workspaceId,
        toolInstanceId,
        endUserId,
        endUserName: input.name ?? null,
        endUserEmail: input.email ?? null,
        returnTo,
        userId,
        tokenId: token?.id ?? null,
        expiresAt,
      });
      tx.audit({
        action: 'connect',
        resourceType: 'tool_instance',
        resourceId: toolInstanceId,
        orgId,
        workspaceId,
        namespaceId: instance.namespaceId,
        metadata: { step: 'link' },
      });
    });
    const url = `${publicUrl()}/connect?${new URLSearchParams({ link: secret }).toString()}`;
    return { orgId, url, expiresAt, toolInstanceId, endUserId };
  }

  /** What a page shows of a link; `null` for one that cannot be used. @throws RATE_LIMIT_EXCEEDED */
  async open(caller: AnyCaller, secret: string): Promise<OpenLink | null> {
    await this.#steps.demand(caller.request.ip);
    return this.#deps.links.bySecret(caller, secret);
  }

  /** What a form of a page must send back: it is of one browser and of one link. */
  formToken({ hash }: Pick<ConnectLink, 'hash'>, browser: string): string {
    return this.#deps.seal.fingerprint(`${hash} ${browser}`);
  }

  /**
   * Begins an authorization, and binds the link to the browser.
   * @returns the page of the provider; `null` if the link cannot be used any more
   * @throws RATE_LIMIT_EXCEEDED; RESOURCE_CONFLICT if the instance lost its client
   */
  async begin(caller: AnyCaller, { link, target }: OpenLink, browser: string): Promise<string | null> {
    const { changes, provider, seal, publicUrl } = this.#deps;
    if (authTypeOf(target) !== 'oauth2') return null;
    await this.#tries.demand(link.hash);
    const client = clientReferenceOf(target);
    const { redirectUri, isOwnClient } = returnOf(publicUrl(), client.clientId);
    const state = newState({ isOwnClient, isOfEndUser: true });
    const verifier = provider.newVerifier();
    const scopes = scopesOf(target);
    const request = { redirectUri, state, verifier, scopes };
    const address = await provider.authorizationUrl({ ...client, clientSecret: null }, request);
    const isBegun = await changes.run(caller, async (tx) => {
      const row = await lockOpen(tx, link.hash, browser);
      if (!row) return false;
      const begun = { stateHash: tokenHash(state), verifier: seal.seal(verifier, link.hash), redirectUri };
      tx.update(
        'connect_links',
        { hash: link.hash },
        { ...begun, scopes: [...scopes], browserHash: tokenHash(browser) },
      );
      return true;
    });
    return isBegun ? address : null;
  }

  /**
   * Ends an authorization with what the provider sent back: a code, or its refusal. The state is used up by the first
   * try; the link only by a connection.
   * @param iss who the provider says that it is (RFC 9207)
   * @returns `null` for a state that is unknown or used, or of another browser
   * @throws RATE_LIMIT_EXCEEDED
   */
  async finish(
    caller: AnyCaller,
    { state, code, iss }: { state: string; code: string | null; iss: string | null },
  ): Promise<ConnectEnd | null> {
    const { changes, links, seal } = this.#deps;
    await this.#steps.demand(caller.request.ip);
    const browser = caller.request.browser?.token ?? null;
    const open = await links.byState(caller, state);
    if (!open || browser === null) return null;
    const { link, target } = open;
    const isTaken = await changes.run(caller, async (tx) => {
      const row = await lockOpen(tx, link.hash, browser);
      if (row?.stateHash !== tokenHash(state)) return false;
      tx.update('connect_links', { hash: link.hash }, { stateHash: null, verifier: null });
      return true;
    });
    if (!isTaken || !link.verifier || !link.redirectUri) return null;
    if (code === null) return this.#ended(open, 'denied');
    const exchanged = { code, redirectUri: link.redirectUri, verifier: seal.open(link.verifier, link.hash) };
    const grant = await this.#exchanged(target, exchanged, { iss, isOwnClient: isOfOwnClient(state) });
    if (typeof grant === 'string') return this.#failed(caller, open, grant);
    const set = { ...connected('oauth2', link.scopes, grant), requestedScopes: link.scopes };
    return this.#store(caller, open, browser, tokensOf(grant), set);
  }

  /**
   * Connects with a key that the end user has typed in.
   * @returns `null` if the link cannot be used any more @throws RATE_LIMIT_EXCEEDED
   */
  async connectByKey(caller: AnyCaller, open: OpenLink, browser: string, apiKey: string): Promise<ConnectEnd | null> {
    if (authTypeOf(open.target) !== 'api_key') return null;
    await this.#tries.demand(open.link.hash);
    const set = { ...connected('api_key', [], ANY_KEY), requestedScopes: [] };
    return this.#store(caller, open, browser, keyOf(apiKey), set);
  }

  /** What the provider grants; or why it grants nothing, or the client does not work. */
  async #exchanged(
    target: ConnectionTarget,
    request: { code: string; redirectUri: string; verifier: string },
    { iss, isOwnClient }: { iss: string | null; isOwnClient: boolean },
  ): Promise<OAuthGrant | string> {
    const { provider, vault } = this.#deps;
    try {
      const client = await clientOf(vault, clientReferenceOf(target));
      const fault = issuerFault(client.service, iss, isOwnClient);
      if (fault !== null) return fault;
      const granted = await provider.exchange(client, request);
      return { ...granted, accountLabel: await provider.accountLabelOf(client, granted) };
    } catch (error) {
      if (error instanceof ProviderRefusal || isConflict(error)) return (error as Error).message;
      throw error;
    }
  }

  /** The end user can do nothing about it: those who administer the instance see why. */
  #failed(caller: AnyCaller, open: OpenLink, reason: string): ConnectEnd {
    const { orgId, workspaceId, toolInstanceId } = open.link;
    const { namespaceId } = open.target.instance;
    const place = { orgId, workspaceId, namespaceId };
    const metadata = { step: 'exchange', by: 'end_user', reason };
    this.#deps.activity.record(
      caller,
      { action: 'connect', resourceType: 'tool_instance', resourceId: toolInstanceId, ...place, metadata },
      { statusCode: 502, errorCode: 'UPSTREAM_ERROR' },
    );
    return this.#ended(open, 'failed');
  }

  /** Uses up the link, and stores what it brought as the connection of its end user. */
  async #store(
    caller: AnyCaller,
    open: OpenLink,
    browser: string,
    value: StoredCredential,
    set: ReturnType<typeof connected> & { requestedScopes: string[] },
  ): Promise<ConnectEnd | null> {
    const { changes, credentials, removal, links } = this.#deps;
    const { link, target } = open;
    const { orgId, toolInstanceId, endUserId } = link;
    // the provider took its time, in which everything may have ended
    if (!(await links.byHash(caller, link.hash))) return null;
    const named = { endUserName: link.endUserName, endUserEmail: link.endUserEmail };
    const connectionId = await changes.run(caller, async (tx) => {
      if (!(await lockOpen(tx, link.hash, browser))) return null;
      const instance = await tx.lock('tool_instances', { id: toolInstanceId }, 'no key update');
      if (!instance?.isActive) return null;
      tx.update('connect_links', { hash: link.hash }, { usedAt: new Date(), browserHash: tokenHash(browser) });
      const before = await tx.lock('connections', { orgId, toolInstanceId, endUserId }, 'no key update');
      const row = before ?? newConnection(link, target);
      if (before) {
        await credentials.prepare(tx);
        if (set.authType === 'api_key') await removal.replaced(tx, before);
        tx.update('connections', { id: row.id }, { ...set, ...named });
      } else tx.insert('connections', { ...row, ...set, ...named });
      await credentials.put(tx, orgId, { connectionId: row.id }, value, { setBy: null });
      recordConnected(tx, row, before !== null);
      return row.id;
    });
    return connectionId === null ? null : this.#ended(open, 'connected', connectionId);
  }

  #ended({ link, target }: OpenLink, status: ConnectEnd['status'], connectionId?: string): ConnectEnd {
    const facts = { status, ...(connectionId !== undefined && { connection_id: connectionId }) };
    const returnTo = link.returnTo === null ? null : returning(link.returnTo, facts);
    return { status, returnTo, toolName: target.tool.name };
  }
}

/** The link, if this browser may still go on with it: of several at once, one does. */
async function lockOpen(tx: Tx, hash: string, browser: string): Promise<ConnectLink | null> {
  const row = await tx.lock('connect_links', { hash }, 'no key update');
  return row && isOpen(row) && isOf(browser, row) ? row : null;
}

const isConflict = (error: unknown): boolean => error instanceof ApiError && error.code === 'RESOURCE_CONFLICT';

const newConnection = (link: ConnectLink, { instance }: ConnectionTarget) => ({
  id: newId('connection'),
  orgId: link.orgId,
  workspaceId: link.workspaceId,
  namespaceId: instance.namespaceId,
  toolInstanceId: instance.id,
  toolId: instance.toolId,
  endUserId: link.endUserId,
  createdBy: link.userId,
});

function recordConnected(
  tx: Tx,
  row: Pick<Connection, 'id' | 'orgId' | 'workspaceId' | 'namespaceId' | 'toolInstanceId'>,
  isAgain: boolean,
): void {
  tx.audit({
    action: 'connect',
    resourceType: 'connection',
    resourceId: row.id,
    orgId: row.orgId,
    workspaceId: row.workspaceId,
    namespaceId: row.namespaceId,
    metadata: { tool_instance_id: row.toolInstanceId, by: 'end_user' },
  });
  emitChange(tx, isAgain ? 'updated' : 'created', 'connection', row);
}
