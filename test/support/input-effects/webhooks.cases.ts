import { expect } from 'vitest';
import { deliveryOf } from '../world.ts';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';
import type { Overrides } from './input-values.ts';

type Json = Record<string, unknown>;

const token = ({ world }: Lab) => world.accounts.owner.accessToken;

/** What the samples do not give: other types, and headers of a secret of the organization. */
async function otherTerms(lab: Lab): Promise<Overrides[]> {
  const { org_id: orgId } = lab.world.ids;
  const name = `${lab.world.marker} ${lab.world.next()}`;
  const input = { name, secretType: 'token', value: { 'x-key': 'of a gateway' } };
  const { id } = (await mutateOk(lab.app, 'createSecret', { orgId, input }, token(lab))) as { id: string };
  return [{ 'input.eventTypes': ['secret.expiring', 'workspace.restored'], 'input.headersRef': id }];
}

/** A filter that leaves out what was sent now, to a webhook of its own: what others sent may fail by itself. */
const leavesOut = (input: Json) => async (lab: Lab) => {
  const { org_id: orgId } = lab.world.ids;
  const name = `${lab.world.marker} ${lab.world.next()}`;
  const made = { name, url: 'https://receiver.example/hook', eventTypes: ['secret.expiring'] };
  const { webhook } = (await mutateOk(lab.app, 'createWebhook', { orgId, input: made }, token(lab))) as {
    webhook: { id: string };
  };
  const { id } = webhook;
  const redelivered = (more: Json) =>
    mutateOk(
      lab.app,
      'redeliverWebhookDeliveries',
      { orgId, id, input: { since: '2020-01-01T00:00:00Z', ...more } },
      token(lab),
    );
  await deliveryOf(lab.app, { ...lab.world, ids: { ...lab.world.ids, webhook_id: id } });
  expect(await redelivered(input)).toMatchObject({ count: 0 });
  expect(await redelivered({})).toMatchObject({ count: 1 });
};

/** Where events are sent to, and what is sent again. */
export const webhookCases: Readonly<Record<string, InputCase>> = {
  createWebhook: { variants: otherTerms },
  updateWebhook: { variants: otherTerms },
  redeliverWebhookDeliveries: {
    effects: {
      'input.since': leavesOut({ since: '2100-01-01T00:00:00Z' }),
      'input.until': leavesOut({ until: '2021-01-01T00:00:00Z' }),
      'input.onlyFailed': leavesOut({ onlyFailed: true }),
    },
  },
};
