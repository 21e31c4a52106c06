import { effectiveRole } from '../access/access.ts';
import { granted, type Role } from '../access/permissions.ts';
import type { AccountMail } from '../auth/account-mail.ts';
import type { Prisma } from '../generated/prisma/client.ts';
import { inBatches } from '../infra/batches.ts';
import type { Changes, Tx } from '../infra/change.ts';
import { systemCaller } from '../infra/system-caller.ts';

interface Due {
  id: string;
  orgId: string;
  workspaceId: string | null;
  namespaceId: string | null;
  environmentId: string | null;
  name: string;
  createdBy: string | null;
  isExpired: boolean;
  needsRotation: boolean;
}

interface Recipient {
  email: string;
  username: string;
}

const BATCH = 50;
const DUE_FOR_ROTATION = `status = 'active' and rotation_reminder_days is not null and rotation_noticed_at is null
  and coalesce(last_rotated_at, created_at) + rotation_reminder_days * interval '1 day' <= now()`;
const EXPIRED = `status <> 'deleted' and expires_at <= now() and expiry_noticed_at is null`;

// nodes that look at the same time share the work: each row is held by the one that tells of it
const TAKE = `select s.id, s.org_id as "orgId", s.workspace_id as "workspaceId", s.namespace_id as "namespaceId",
    s.environment_id as "environmentId", s.name, s.created_by as "createdBy",
    (${EXPIRED}) is true as "isExpired", (${DUE_FOR_ROTATION}) is true as "needsRotation"
  from secrets s where ((${EXPIRED}) or (${DUE_FOR_ROTATION}))
    and exists (select 1 from organizations o where o.id = s.org_id and o.deleted_at is null)
    and (s.workspace_id is null or exists (select 1 from workspaces w where w.id = s.workspace_id and w.deleted_at is null))
  order by s.id limit ${BATCH} for update skip locked`;

/** Tells of secrets that have expired or should be rotated, once each: an event, and a mail to whoever made it, or else to the owners. */
export class SecretNotices {
  readonly #changes: Changes;
  readonly #mail: AccountMail;

  constructor(deps: { changes: Changes; mail: AccountMail }) {
    this.#changes = deps.changes;
    this.#mail = deps.mail;
  }

  /** Safe on several nodes at once. @returns how many secrets were told of */
  async send(): Promise<number> {
    return inBatches(BATCH, () => this.#changes.run(systemCaller('secret notices'), (tx) => this.#sendBatch(tx)));
  }

  async #sendBatch(tx: Tx): Promise<number> {
    const due = await tx.db.$queryRawUnsafe<Due[]>(TAKE);
    for (const secret of due) {
      const { id, orgId, workspaceId, namespaceId, environmentId, isExpired, needsRotation } = secret;
      const now = new Date();
      await tx.db.$executeRaw`
        update secrets set expiry_noticed_at = case when ${isExpired} then ${now} else expiry_noticed_at end,
          rotation_noticed_at = case when ${needsRotation} then ${now} else rotation_noticed_at end where id = ${id}`;
      const about = { orgId, workspaceId, namespaceId, environmentId, resourceType: 'secret', resourceId: id };
      if (isExpired) tx.emit({ type: 'secret.expired', ...about });
      if (needsRotation) tx.emit({ type: 'secret.rotation_due', ...about });
      const recipients = await recipientsOf(tx.db, secret);
      tx.afterCommit(() => this.#mailTo(recipients, secret));
    }
    return due.length;
  }

  #mailTo(recipients: readonly Recipient[], { id, name, isExpired, needsRotation }: Due): void {
    const secret = `The secret '${name}' (${id})`;
    for (const to of recipients) {
      if (isExpired)
        this.#mail.secretNotice(
          to,
          'A secret has expired',
          `${secret} has expired: the service does not use it any more. Rotate it and give it a new date.`,
        );
      if (needsRotation)
        this.#mail.secretNotice(
          to,
          'A secret is due for rotation',
          `${secret} was not rotated for as long as its reminder allows. Rotate it.`,
        );
    }
  }
}

/** Whoever made it, while that is somebody who may read it; else the owners of the organization. */
async function recipientsOf(
  db: Prisma.TransactionClient,
  { orgId, workspaceId, createdBy }: Due,
): Promise<Recipient[]> {
  const creators = await db.$queryRaw<(Recipient & { organizationRole: Role; workspaceRole: Role | null })[]>`
    select u.email, u.username, m.role as "organizationRole",
      (select w.role from workspace_members w where w.workspace_id = ${workspaceId} and w.user_id = u.id) as "workspaceRole"
    from users u join organization_members m on m.user_id = u.id and m.org_id = ${orgId}
    where u.id = ${createdBy} and u.is_active`;
  const readers = creators.filter(({ organizationRole, workspaceRole }) => {
    const role = workspaceId ? effectiveRole(organizationRole, workspaceRole) : organizationRole;
    return role !== null && granted(role, 'secret:read') !== 'none';
  });
  if (readers.length > 0) return readers;
  return db.$queryRaw<Recipient[]>`
    select u.email, u.username from users u join organization_members m on m.user_id = u.id
    where m.org_id = ${orgId} and m.role = 'owner' and u.is_active order by m.id`;
}
