import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.ts';
import { register } from '../../support/person.ts';

const lines: string[] = [];
let app: TestApp;

beforeAll(async () => {
  app = await startTestApp({
    logger: pino({ level: 'error' }, { write: (line: string) => void lines.push(line) }),
  });
});
afterAll(() => app.close());

it('the job of a change is taken at once, by workers that wait for no connection of the change', async () => {
  for (let n = 0; n < 4; n++) {
    await register(app);
    await app.jobsDone();
  }
  expect(app.mails).toHaveLength(4);
  expect(lines).toEqual([]);
});
