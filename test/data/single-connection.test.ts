import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { callsOf } from '../support/calls.ts';
import { gate } from '../support/gate.ts';
import { type Person, registerProven } from '../support/person.ts';

let app: TestApp;
let owner: Person;
beforeAll(async () => {
  app = await startTestApp();
  owner = await registerProven(app);
});
afterAll(() => app.close());

describe('a transaction asks for no second connection', () => {
  it('and every test notices one that does, by hand-written SQL and by Prisma', async () => {
    const { prisma } = app.database;
    const { sql } = app.services;
    await expect(prisma.$transaction(async () => sql.read('select 1', []))).rejects.toThrow(
      'inside a transaction: select 1',
    );
    await expect(prisma.$transaction(async () => prisma.user.count())).rejects.toThrow('inside a transaction');
    await expect(prisma.$transaction(async (tx) => tx.user.count())).resolves.toBeGreaterThan(0);
    await expect(sql.read('select 1 as one', [])).resolves.toEqual([{ one: 1 }]);
  });

  it('and what goes on after its end asks as everybody does', async () => {
    const { sql } = app.services;
    let later: Promise<unknown> | undefined;
    const { opened: ended, open: end } = gate();
    await app.database.prisma.$transaction(async () => {
      later = ended.then(() => sql.read('select 1 as one', []));
    });
    end();
    await expect(later).resolves.toEqual([{ one: 1 }]);
  });

  it('to say why an invitation is not pending any more', async () => {
    const { post, delete: remove } = callsOf(app);
    const url = `/v1/orgs/${owner.orgId}/invitations`;
    const rounds = Array.from({ length: 8 }, async (_, n) => {
      const made = await post(url, { email: `invited-${n}@example.test` }, owner.headers);
      const one = `${url}/${made.json().invitation_id}`;
      return Promise.all([
        remove(one, owner.headers),
        remove(one, owner.headers),
        post(`${one}/resend`, undefined, owner.headers),
      ]);
    });
    const answers = (await Promise.all(rounds)).flat();
    const statuses = new Set(answers.map(({ statusCode }) => statusCode));
    expect([...statuses].filter((status) => ![200, 204, 409].includes(status))).toEqual([]);
    const refused = answers.filter(({ statusCode }) => statusCode === 409);
    expect(refused.map((answer) => answer.json().details.reason)).toContain('already_revoked');
  });
});
