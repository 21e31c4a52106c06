import type { Access } from '../../access/access.ts';
import { isSameSecret, tokenHash } from '../../access/random-token.ts';
import { findRow } from '../../data/find-row.ts';
import type { Sql } from '../../data/sql.ts';
import { statement } from '../../data/writes.ts';
import type { ConnectLink } from '../../generated/prisma/client.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import { isRefusal } from '../../kernel/errors.ts';
import type { Permission } from '../../kernel/resources.ts';
import { isLivePlace } from '../../tenancy/views.ts';
import { type ConnectionTarget, findTarget } from '../connections/connection-target.ts';
import { isSteered } from './steered.ts';

/** The user who made a link, as long as the user, and the token or session that it names, may do so. */
export type MakerOf = (
  caller: AnyCaller,
  maker: { userId: string; tokenId: string | null; sessionId?: string | null },
  permission: Permission,
  place: { orgId: string; workspaceId: string; namespaceId: string | null },
) => Promise<Caller>;

/** A link that can be used now, with what it is for. */
export interface OpenLink {
  link: ConnectLink;
  target: ConnectionTarget;
  organization: string;
}

interface OpenLinkDeps {
  sql: Sql;
  access: Access;
  makerOf: MakerOf;
}

/** Whether a link can still be used, as far as its row says. */
export const isOpen = ({ usedAt, expiresAt }: Pick<ConnectLink, 'usedAt' | 'expiresAt'>): boolean =>
  usedAt === null && expiresAt.getTime() > Date.now();

/** Whether a browser may go on with a link: the one that began, or any if none has. */
export const isOf = (browser: string | null, { browserHash }: Pick<ConnectLink, 'browserHash'>): boolean =>
  browserHash === null || (browser !== null && isSameSecret(browserHash, tokenHash(browser)));

/**
 * Finds connect links. One that is unknown, used, expired or replaced, of another browser, or of somebody who may not
 * connect any more, is none: nobody learns which.
 */
export class OpenLinks {
  readonly #deps: OpenLinkDeps;

  constructor(deps: OpenLinkDeps) {
    this.#deps = deps;
  }

  bySecret(caller: AnyCaller, secret: string): Promise<OpenLink | null> {
    return this.#find(caller, { hash: tokenHash(secret) });
  }

  /** A link that was found before. */
  byHash(caller: AnyCaller, hash: string): Promise<OpenLink | null> {
    return this.#find(caller, { hash });
  }

  /** The link whose authorization has a state. */
  byState(caller: AnyCaller, state: string): Promise<OpenLink | null> {
    return this.#find(caller, { stateHash: tokenHash(state) });
  }

  async #find(caller: AnyCaller, where: { hash: string } | { stateHash: string }): Promise<OpenLink | null> {
    const { sql } = this.#deps;
    const link = await findRow(sql, 'connect_links', where);
    if (!link || !isOpen(link) || !isOf(caller.request.browser?.token ?? null, link)) return null;
    const [organization] = await sql.query<{ name: string }>({
      text: `select o.name from organizations o where o.id = $1 and ${isLivePlace('$2')}`,
      values: [link.orgId, link.workspaceId],
    });
    const target = organization && (await findTarget(sql, link.orgId, link.toolInstanceId));
    if (!target || !isUsable(link, target) || !(await this.#isMakers(caller, link, target))) return null;
    return { link, target, organization: organization.name };
  }

  /** Whether its maker could make it now. */
  async #isMakers(caller: AnyCaller, link: ConnectLink, target: ConnectionTarget): Promise<boolean> {
    const { access, makerOf } = this.#deps;
    const { instance } = target;
    const permission = 'connection:create';
    const { orgId, workspaceId } = link;
    const place = { orgId, workspaceId, namespaceId: instance.namespaceId };
    try {
      const maker = await makerOf(caller, link, permission, place);
      const { grant } = await access.requireWorkspace(maker, orgId, workspaceId, permission, place);
      access.demandCovers(maker, grant, permission, instance.createdBy);
      return await mayCollect(access, maker, target);
    } catch (error) {
      if (isRefusal(error)) return false;
      throw error;
    }
  }
}

const isUsable = ({ returnTo }: ConnectLink, { instance, tool }: ConnectionTarget): boolean =>
  instance.isActive && tool.status !== 'disabled' && (returnTo === null || instance.returnAddresses.includes(returnTo));

/**
 * Whether somebody may have end users give their credentials to an instance: who decides where it sends them can read
 * them there, so that takes the permission to take them out.
 */
export async function mayCollect(access: Access, caller: Caller, target: ConnectionTarget): Promise<boolean> {
  const { orgId, workspaceId, namespaceId } = target.instance;
  return !isSteered(target) || access.permits(caller, 'connection:use', { orgId, workspaceId, namespaceId });
}

/** Ends the links of an end user that nobody has finished. */
export const endOpenLinks = (toolInstanceId: string, endUserId: string) => statement`
  update connect_links set expires_at = now()
  where tool_instance_id = ${toolInstanceId} and end_user_id = ${endUserId} and used_at is null and expires_at > now()`;
