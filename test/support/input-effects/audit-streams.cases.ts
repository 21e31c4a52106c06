import { expect } from 'vitest';
import type { InputCase, Lab } from './input-case.ts';
import { mutateOk } from './input-trials.ts';

type Json = Record<string, unknown>;

const change = (lab: Lab, name: string, args: Json): Promise<Json> =>
  mutateOk(
    lab.app,
    name,
    { orgId: lab.world.ids.org_id, ...args },
    lab.world.accounts.owner.accessToken,
  ) as Promise<Json>;

async function secretIn(lab: Lab): Promise<unknown> {
  const name = `${lab.world.marker} ${lab.world.next()}`;
  const value = { access_key_id: 'of a store', secret_access_key: 'of a store' };
  return (await change(lab, 'createSecret', { input: { name, secretType: 'custom', value } })).id;
}

const words = { 'input.actions': ['upgrade', 'merge'], 'input.resourceTypes': ['tool_instance'] };

async function storeOf(lab: Lab): Promise<Json> {
  return {
    'input.targetType': 's3',
    'input.url': 'https://s3.example.test',
    'input.bucket': 'records',
    'input.region': 'eu-west-1',
    'input.prefix': 'audit/',
    'input.credentialsRef': await secretIn(lab),
    'input.isCompressed': true,
  };
}

/** What is for stores alone is changed at one. */
const changesStore = (input: Json) => async (lab: Lab) => {
  const made = {
    name: 'Files',
    targetType: 's3',
    url: 'https://s3.example.test',
    bucket: 'records',
    credentialsRef: await secretIn(lab),
    isEnabled: false,
  };
  const { id } = await change(lab, 'createAuditStream', { input: made });
  expect(await change(lab, 'updateAuditStream', { id, input })).toMatchObject({ ...input, id });
};

/** Where activity records are sent to. */
export const auditStreamCases: Readonly<Record<string, InputCase>> = {
  createAuditStream: {
    variants: async (lab) => [{ ...words, 'input.credentialsRef': await secretIn(lab) }, await storeOf(lab)],
  },
  updateAuditStream: {
    variants: async (lab) => [{ ...words, 'input.credentialsRef': await secretIn(lab) }],
    effects: {
      'input.bucket': changesStore({ bucket: 'others' }),
      'input.region': changesStore({ region: 'eu-west-1' }),
      'input.prefix': changesStore({ prefix: 'audit/' }),
    },
  },
};
