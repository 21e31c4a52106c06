import { newId } from '../../src/kernel/ids.ts';
import type { TestApp } from './app.ts';

/** What a user grants to an application. No route makes it: a page of the authorization server does. */
export async function makeGrant(
  app: TestApp,
  data: { orgId: string; applicationId: string; userId: string; sessionId?: string },
): Promise<string> {
  const { id } = await app.database.prisma.oauthGrant.create({
    data: { id: newId('application_grant'), scopes: ['workspace:read'], ...data },
  });
  return id;
}
