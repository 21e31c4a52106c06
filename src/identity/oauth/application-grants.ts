import type { Authentication } from '../../access/authentication.ts';
import type { ServiceDeps } from '../../access/service-deps.ts';
import type { PageArgs } from '../../data/page.ts';
import { columnsOf } from '../../data/paging.ts';
import { Reads } from '../../data/reads.ts';
import { recordChange } from '../../data/record-change.ts';
import type { Tx } from '../../data/tx.ts';
import { statement } from '../../data/writes.ts';
import { type OauthGrant, Prisma } from '../../generated/prisma/client.ts';
import type { AnyCaller, Caller } from '../../kernel/caller.ts';
import type { Checked, Deleted, OrganizationPlace } from '../../kernel/checked-place.ts';
import { notFound } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { systemCaller } from '../../kernel/system-caller.ts';
import { MOST_SHOWN } from '../pages/most-shown.ts';

/** A program that belongs to no organization: somebody else's, which a document describes, or the command line. */
export interface ForeignClient {
  /** Its `client_id`: the address of the document, if there is one. */
  metadataUrl: string;
  name: string;
  redirectUris: string[];
}

/** What a user grants. */
export interface NewGrant {
  orgId: string;
  /** Its id, or a shared program, which the organization then has among its applications. */
  application: string | ForeignClient;
  userId: string;
  /** The session that it ends with; `null` if it lasts longer. */
  sessionId: string | null;
  scopes: string[];
  workspaceIds: string[];
}

/** An application that a user has granted something to. */
export interface ConnectedApplication {
  id: string;
  orgId: string;
  applicationId: string;
  name: string;
  organization: string;
  scopes: string[];
  workspaceIds: string[];
  endsWithSession: boolean;
  createdAt: Date;
  lastUsedAt: Date | null;
}

/** What a user has granted to an application, as administrators see it. */
export type ApplicationGrant = Omit<OauthGrant, 'revokedAt' | 'revokedReason'>;

/** Arguments of the list of an organization's grants. */
export interface GrantArgs extends PageArgs {
  applicationId?: string | null;
  userId?: string | null;
}

interface KnownGrant {
  id: string;
  orgId: string;
  applicationId: string;
}

type Reason = 'user' | 'administrator' | 'application' | 'replaced';

/**
 * How many grants of a user to an application live at once, those of `offline_access` by themselves: as many machines,
 * and tabs. More of them would only pile up, because a sign-in makes a new one.
 */
const MOST_LIVING = 20;

const isLiving = (grant: string) => `${grant}.revoked_at is null and (${grant}.session_id is null or exists (
    select from sessions s where s.id = ${grant}.session_id and s.revoked_at is null and s.expires_at > now()))`;
const IS_LIVING = isLiving('g');
const OF_USER = `select g.id, g.org_id as "orgId", g.application_id as "applicationId", a.name,
    o.name as organization, g.scopes, g.workspace_ids as "workspaceIds",
    g.session_id is not null as "endsWithSession", g.created_at as "createdAt", g.last_used_at as "lastUsedAt"
  from oauth_grants g join applications a on a.id = g.application_id
  join organizations o on o.id = g.org_id and o.deleted_at is null
  where g.user_id = $1 and ${IS_LIVING} order by g.id desc limit ${MOST_SHOWN + 1}`;
const ONE_OF_USER = `select g.org_id as "orgId", g.application_id as "applicationId" from oauth_grants g
  where g.id = $1 and g.user_id = $2 and ${IS_LIVING}`;
const ONE_IN_ORGANIZATION = `select g.application_id as "applicationId" from oauth_grants g
  where g.id = $1 and g.org_id = $2 and ${IS_LIVING}`;
const HIDDEN: readonly string[] = ['revokedAt', 'revokedReason'];
const grants = {
  kind: 'application_grant',
  from: 'oauth_grants',
  columns: columnsOf(Object.values(Prisma.OauthGrantScalarFieldEnum).filter((name) => !HIDDEN.includes(name))),
  below: ['orgId'],
  always: [isLiving('t')],
  filters: ({ applicationId, userId }: GrantArgs) => ({
    't.application_id = ?': applicationId,
    't.user_id = ?': userId,
  }),
} as const;
const SUPERFLUOUS = `select g.id from oauth_grants g
  where g.user_id = $1 and g.application_id = $2 and (g.session_id is null) = $3 and ${IS_LIVING}
  order by coalesce(g.last_used_at, g.created_at) desc, g.id desc offset ${MOST_LIVING - 1}`;

/**
 * A shared program among the applications of an organization, as it is described now. The first
 * member who lets it in brings it there; others change it only if its document says something else. @returns its id
 */
async function foreign(tx: Tx, caller: Caller, orgId: string, client: ForeignClient): Promise<string> {
  const { metadataUrl, name, redirectUris } = client;
  const [row] = await tx.query<{ id: string; isNew: boolean }>(statement`
    insert into applications (id, org_id, name, application_type, redirect_uris, metadata_url, created_by)
    values (${newId('application')}, ${orgId}, ${name}, 'public', ${redirectUris}::text[], ${metadataUrl},
      ${caller.principal.userId})
    on conflict (org_id, metadata_url) do update set name = excluded.name, redirect_uris = excluded.redirect_uris,
      updated_at = now()
    where (applications.name, applications.redirect_uris) is distinct from (excluded.name, excluded.redirect_uris)
    returning id, xmax = 0 as "isNew"`);
  if (!row) return foreignId(tx, orgId, metadataUrl);
  const { id, isNew } = row;
  if (isNew) recordChange(tx, 'create', 'application', { id, orgId });
  else recordChange(tx, 'update', 'application', { id, orgId }, { fields: ['name', 'redirectUris'] });
  return id;
}

/** One that is there as its document describes it. */
async function foreignId(tx: Tx, orgId: string, metadataUrl: string): Promise<string> {
  const [row] = await tx.query<{ id: string }>(
    statement`select id from applications where org_id = ${orgId} and metadata_url = ${metadataUrl}`,
  );
  return row!.id;
}

/** What users have granted to applications. */
export class ApplicationGrants {
  readonly retention = [
    `delete from oauth_grants where revoked_at < now() - interval '90 days'`,
    `delete from oauth_records where expires_at < now()`,
  ];
  readonly reads: Reads<ApplicationGrant, OrganizationPlace, GrantArgs>;
  readonly #deps: ServiceDeps & { authentication: Authentication };

  constructor(deps: ServiceDeps & { authentication: Authentication }) {
    this.#deps = deps;
    this.reads = new Reads<ApplicationGrant, OrganizationPlace, GrantArgs>(deps, grants);
  }

  /** The grants of the user to the application that were unused for longest end, if there are many. @returns its id */
  async create(caller: Caller, grant: NewGrant): Promise<string> {
    const id = newId('application_grant');
    const { orgId, userId, sessionId, scopes } = grant;
    await this.#deps.changes.run(caller, async (tx) => {
      const { application, ...row } = grant;
      const applicationId =
        typeof application === 'string' ? application : await foreign(tx, caller, orgId, application);
      const values = [userId, applicationId, sessionId === null];
      for (const former of await tx.query<{ id: string }>({ text: SUPERFLUOUS, values }))
        this.#end(tx, { id: former.id, orgId, applicationId }, 'replaced');
      const given = caller.principal.token === null ? caller.principal.sessionId : null;
      // an organization may take only what was given in a session of its identity provider, or with a second factor
      const [session] = await tx.query<{ identityProviderId: string | null; withFactor: boolean }>(
        statement`select identity_provider_id as "identityProviderId", factor_at is not null as "withFactor"
          from sessions where id = ${given}`,
      );
      const { identityProviderId = null, withFactor = false } = session ?? {};
      tx.insert('oauth_grants', { id, ...row, applicationId, identityProviderId, withFactor });
      const client = typeof application === 'string' ? {} : { client_id: application.metadataUrl };
      const metadata = { application_id: applicationId, ...client, scopes };
      tx.audit({ action: 'create', resourceType: 'application_grant', resourceId: id, orgId, metadata });
    });
    return id;
  }

  /** Whether an organization has a shared program among its applications. */
  async knows(orgId: string, metadataUrl: string): Promise<boolean> {
    const text = 'select 1 from applications where org_id = $1 and metadata_url = $2';
    return (await this.#deps.sql.read(text, [orgId, metadataUrl])).length > 0;
  }

  /** Whether any organization has a shared program among its applications. */
  async isKept(metadataUrl: string): Promise<boolean> {
    const text = 'select 1 from applications where metadata_url = $1 limit 1';
    return (await this.#deps.sql.read(text, [metadataUrl])).length > 0;
  }

  /** What a user has granted and not taken back, newest first: one more than are shown, if there are more. */
  ofUser(userId: string): Promise<ConnectedApplication[]> {
    return this.#deps.sql.read<ConnectedApplication>(OF_USER, [userId]);
  }

  /** Takes back what the caller has granted. @throws RESOURCE_NOT_FOUND */
  async revokeOwn(caller: Caller, id: string): Promise<void> {
    const [known] = await this.#deps.sql.read<{ orgId: string; applicationId: string }>(ONE_OF_USER, [
      id,
      caller.principal.userId,
    ]);
    if (!known) throw notFound('application_grant', id);
    await this.#revoke(caller, { id, ...known }, 'user');
  }

  /** Takes back what a user of the organization has granted. @throws RESOURCE_NOT_FOUND */
  async revokeIn(
    caller: Caller,
    { orgId }: Checked<OrganizationPlace>,
    id: string,
  ): Promise<Deleted<OrganizationPlace & { applicationId: string }>> {
    const [known] = await this.#deps.sql.read<{ applicationId: string }>(ONE_IN_ORGANIZATION, [id, orgId]);
    if (!known) throw notFound('application_grant', id);
    await this.#revoke(caller, { id, orgId, ...known }, 'administrator');
    return { id, orgId, ...known };
  }

  /** Its tokens were used in a way that no honest application uses them, or the application gave it back. */
  async revoke(id: string): Promise<void> {
    const [known] = await this.#deps.sql.read<{ orgId: string; applicationId: string }>(
      `select org_id as "orgId", application_id as "applicationId" from oauth_grants
        where id = $1 and revoked_at is null`,
      [id],
    );
    if (known) await this.#revoke(systemCaller('authorization server'), { id, ...known }, 'application');
  }

  async #revoke(caller: AnyCaller, grant: KnownGrant, reason: Reason): Promise<void> {
    await this.#deps.changes.run(caller, async (tx) => this.#end(tx, grant, reason));
  }

  #end(tx: Tx, { id, orgId, applicationId }: KnownGrant, reason: Reason): void {
    tx.write(statement`update oauth_grants set revoked_at = now(), revoked_reason = ${reason}
      where id = ${id} and revoked_at is null`);
    // a request that is under way names the grant of the one before, but goes on without it
    tx.write(statement`delete from oauth_records where grant_id = ${id} and kind <> 'Interaction'`);
    const metadata = { application_id: applicationId, reason };
    tx.audit({ action: 'revoke', resourceType: 'application_grant', resourceId: id, orgId, metadata });
    tx.afterCommit(() => this.#deps.authentication.grantsChanged());
  }
}
