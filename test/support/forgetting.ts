import type { TestApp } from './app.ts';

/**
 * Makes a node forget what it knows for a moment of sessions, tokens and memberships, by telling it that all of them
 * changed: its next access checks ask the database.
 */
export async function forgetAccess({ services, database }: TestApp): Promise<void> {
  services.authentication.sessionsChanged();
  const { rows } = await database.pool.query<{ id: string }>('select id from organizations');
  for (const { id } of rows) services.access.facts.organizationDeleted(id);
}
