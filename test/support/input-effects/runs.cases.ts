import { expect } from 'vitest';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import { leftOut } from './input-values.ts';

const HOUR_MS = 3_600_000;

/** A report of a request to a model, as the audit trail has it. */
async function reported({ app, world }: Lab, more: object) {
  const { org_id: orgId, workspace_id: workspaceId, logical_model_id: logicalModelId } = world.ids;
  const input = { providerAccountId: world.ids.provider_account_id, modelName: 'm', outcome: 'SUCCESS', ...more };
  const given = { orgId, workspaceId, logicalModelId, input };
  await mutateOk(app, 'reportModelUsage', given, world.accounts.owner.accessToken);
  const row = await app.database.prisma.activity.findFirst({
    where: { resourceId: logicalModelId, orgId, action: 'execute', statusCode: { lt: 300 } },
    orderBy: { id: 'desc' },
  });
  if (!row) throw new Error('The report left no record.');
  return row;
}

/** The record of a report has the value of the field. */
const isRecorded =
  (field: string, value: unknown, recorded: object) =>
  async (lab: Lab): Promise<void> => {
    expect(await reported(lab, {})).not.toMatchObject(recorded);
    expect(await reported(lab, { [field]: value })).toMatchObject(recorded);
  };

/** Executions, the use of models, and who is present. */
export const runCases: Readonly<Record<string, InputCase>> = {
  reportExecution: {
    demands: { 'input.appId': 'app_nobodys' },
    variants: () => [
      { 'input.actionId': leftOut, 'input.tokenUsage.total': 1_000 },
      {
        'input.endpointId': leftOut,
        'input.status': 'failed',
        'input.error': 'It broke.',
        'input.startedAt': new Date(Date.now() - 2 * HOUR_MS).toISOString(),
        'input.endedAt': new Date(Date.now() - HOUR_MS).toISOString(),
      },
    ],
  },
  reportModelUsage: {
    effects: {
      'input.cost': isRecorded('cost', '0.125', { metadata: { cost: '0.125' } }),
      'input.executionId': isRecorded('executionId', 'run-1', { executionId: 'run-1' }),
      'input.inputTokens': isRecorded('inputTokens', 7, { tokenUsage: { input: 7, output: 0, total: 7 } }),
      'input.latencyMs': isRecorded('latencyMs', 77, { metadata: { latency_ms: 77 } }),
      'input.modelName': isRecorded('modelName', 'other', { metadata: { model_name: 'other' } }),
      'input.outcome': isRecorded('outcome', 'TIMEOUT', { metadata: { outcome: 'timeout' } }),
      'input.outputTokens': isRecorded('outputTokens', 9, { tokenUsage: { input: 0, output: 9, total: 9 } }),
      'input.providerAccountId': async (lab) => {
        const { provider_account_id: id } = lab.world.ids;
        expect(await reported(lab, { providerAccountId: id })).toMatchObject({ metadata: { provider_account_id: id } });
        await expect(reported(lab, { providerAccountId: 'pa_nobodys' })).rejects.toThrow('VALIDATION_ERROR');
      },
      'input.purpose': isRecorded('purpose', 'a purpose', { metadata: { purpose: 'a purpose' } }),
    },
  },
  viewResource: {
    effects: {
      resourceType: async ({ app, world }) => {
        const { org_id: orgId, workspace_id: workspaceId, thread_id, app_id } = world.ids;
        for (const [resourceType, resourceId] of [
          ['thread', thread_id],
          ['app', app_id],
        ]) {
          const given = { orgId, workspaceId, resourceType, resourceId };
          const answer = await mutateOk(app, 'viewResource', given, world.accounts.owner.accessToken);
          const { presence } = answer as { presence: { userId: string; viewing: unknown }[] };
          const me = presence.find(({ userId }) => userId === world.accounts.owner.userId);
          expect(me?.viewing).toMatchObject({ resourceType, resourceId });
        }
      },
    },
  },
};
