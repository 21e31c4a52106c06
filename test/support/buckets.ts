import type { TestApp } from './app.ts';
import { waitUntil } from './wait.ts';

/**
 * Makes the buckets of new workspaces, or waits until the app has made them: what makes them sends statements and
 * events of its own, and waits for workspaces that are locked.
 */
export async function bucketsMade({ services, database }: TestApp): Promise<void> {
  await services.buckets.provisionPending();
  const pending = () => database.prisma.workspace.count({ where: { bucketStatus: 'pending' } });
  await waitUntil(async () => (await pending()) === 0, { what: 'the buckets of all workspaces' });
}
