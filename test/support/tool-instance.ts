import { newId } from '../../src/core/ids.ts';
import type { Prisma } from '../../src/generated/prisma/client.ts';
import type { TestApp } from './app.ts';
import type { SampleSource } from './samples.ts';

const UNCALLED = {
  name: 'oauth',
  type: 'oauth2',
  authorization_url: 'https://provider.example.test/authorize',
  token_url: 'https://provider.example.test/token',
};

/** A tool with an OAuth service that nobody calls, or another one, and an instance of it that a user made. */
export async function makeToolInstance(
  app: TestApp,
  { marker, ids, next }: Pick<SampleSource, 'marker' | 'ids' | 'next'>,
  createdBy: string,
  service: object = UNCALLED,
): Promise<string> {
  const { prisma } = app.database;
  const [orgId, workspaceId] = [ids.org_id!, ids.workspace_id!];
  const tool = await prisma.tool.create({
    data: {
      id: newId('tool'),
      orgId,
      name: `${marker} tool`,
      slug: `${marker}-${next()}`,
      description: `${marker} tool`,
      supportsConnection: true,
      credentialSchema: [service] as Prisma.InputJsonArray,
      createdBy,
    },
  });
  const id = newId('tool_instance');
  const clientId = `${marker}-client`;
  const name = `${marker} instance`;
  await prisma.toolInstance.create({ data: { id, orgId, workspaceId, toolId: tool.id, name, clientId, createdBy } });
  return id;
}
