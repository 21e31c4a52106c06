import type { Access } from '../../access/access.ts';
import { isPart } from '../../access/whole-place.ts';
import type { Caller } from '../../kernel/caller.ts';
import { forbidden } from '../../kernel/errors.ts';
import { type ActingUser, callerOf } from '../sending/acting-user.ts';

/** Demands the right to everybody's records of a whole organization. @throws FORBIDDEN `activity:read` */
export async function demandAllActivity(access: Access, caller: Caller, orgId: string): Promise<void> {
  const { grant } = await access.requireOrganization(caller, orgId, 'activity:read');
  if (grant !== 'all' || isPart(caller, [])) throw forbidden('activity:read');
}

/** The caller whose rights a stream has: see {@link callerOf}. */
export const auditCaller = (access: Access, stream: ActingUser): Promise<Caller | 'no access' | 'deleted'> =>
  callerOf(stream, 'audit streams', async (caller) => {
    // who may not change streams any more has none that goes on
    await access.requireOrganization(caller, stream.orgId, 'audit_stream:read');
    await demandAllActivity(access, caller, stream.orgId);
  });
