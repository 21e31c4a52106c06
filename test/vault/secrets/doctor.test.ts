import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import type { PrismaClient } from '../../../src/generated/prisma/client.ts';
import { RootKeys } from '../../../src/platform/keys/root-keys.ts';
import { type Examined, examine, type VaultFinding } from '../../../src/vault/secrets/doctor.ts';
import { ROOT_KEYS, startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';
import { newSecret } from './new-secret.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/** Examines, and does something each time after the secrets were read, and before the values of one are. */
async function examineWhile(change: () => Promise<void>): Promise<Examined & { findings: VaultFinding[] }> {
  const prisma = app.database.prisma.$extends({
    query: {
      secretVersion: {
        async findMany({ args, query }) {
          await change();
          return query(args);
        },
      },
    },
  });
  const findings: VaultFinding[] = [];
  const rootKeys = RootKeys.unchecked(loadConfig({ ROOT_KEYS }));
  const examined = await examine(prisma as unknown as PrismaClient, rootKeys, (finding) => findings.push(finding));
  return { ...examined, findings };
}

test('a secret that is destroyed or rotated beside the doctor is no finding', async () => {
  const ann = await register(app, { name: 'ann' });
  const { url } = await newSecret(ann);
  // as many as it takes for the value that is looked for to be destroyed
  const rotate = async () => {
    for (let n = 0; n < 21; n++) expect((await ann.call('POST', `${url}/rotate`, { value: { n } })).status).toBe(200);
  };
  expect(await examineWhile(rotate)).toEqual({ secrets: 1, versions: 1, findings: [] });
  const destroy = async () => {
    expect((await ann.call('DELETE', `${url}?permanent=true`)).status).toBe(204);
  };
  expect(await examineWhile(destroy)).toEqual({ secrets: 1, versions: 20, findings: [] });
  expect(await examineWhile(async () => undefined)).toEqual({ secrets: 0, versions: 0, findings: [] });
});
