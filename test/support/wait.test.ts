// own process: it stops the timers that an app of other files would set
import { expect, it, onTestFinished, vi } from 'vitest';
import { slowness } from './slowness.ts';
import { waitFor, waitUntil } from './wait.ts';

/** Short for each wait that is to fail: it fails after this time, however slow the machine is. */
const SOON = { withinMs: 5 };
const failureOf = (wait: Promise<unknown>): Promise<Error> =>
  wait.then(
    () => expect.unreachable('the wait has succeeded'),
    (error: Error) => error,
  );

it('answers with the first truthy value, and tries again after falsy ones and errors', async () => {
  const answers = [null, undefined, 0, '', false, new Error('not yet'), 'here'];
  const next = () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  expect(await waitUntil(next)).toBe('here');
  answers.push(0, new Error('not yet'), 7);
  expect(await waitUntil(async () => next())).toBe(7);
});

it('answers with what the assertions return, as soon as they hold', async () => {
  let tries = 0;
  const third = () => {
    tries++;
    expect(tries).toBe(3);
    return 'third';
  };
  expect(await waitFor(third)).toBe('third');
  expect(tries).toBe(3);
  await waitFor(async () => expect(++tries).toBe(6));
});

it('tries at once: what holds already costs no time', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  onTestFinished(() => timers.mockRestore());
  let isTried = false;
  const waiting = waitFor(() => {
    isTried = true;
  });
  expect(isTried).toBe(true);
  await waiting;
});

it('says what did not come, how long it waited and the last value', async () => {
  const { message, stack } = await failureOf(waitUntil(() => null, { what: 'the mail to ann', ...SOON }));
  expect(message).toMatch(/^waited [\d.]+ s for the mail to ann: the last value was null$/);
  expect(stack).toContain('wait.test.ts');
  expect(stack).not.toContain('poll');
});

it('says the failure of the last try, and keeps it as the cause with its difference', async () => {
  const rows = [{ name: 'a' }];
  const { message, cause } = await failureOf(waitFor(() => expect(rows).toEqual([{ name: 'b' }]), SOON));
  expect(message).toContain('expect(rows).toEqual(');
  expect(message).toContain('expected [ { name: ');
  expect(cause).toMatchObject({ actual: rows, expected: [{ name: 'b' }] });
});

it('describes what is waited for when the wait is over, not when it begins', async () => {
  const seen: string[] = [];
  const wait = waitUntil(
    () => {
      seen.push('x');
      return false;
    },
    { what: () => `the end, after ${seen.length} tries`, ...SOON },
  );
  expect((await failureOf(wait)).message).toMatch(/the end, after [1-9]\d* tries/);
});

it('ends although a try never answers', async () => {
  const never = new Promise<boolean>(() => undefined);
  expect((await failureOf(waitUntil(() => never, SOON))).message).toMatch(/the last try has not answered$/);
});

it('refuses a boolean where assertions belong, at once', async () => {
  const error = await failureOf(waitFor(() => false as unknown));
  expect(error).toBeInstanceOf(TypeError);
});

it('goes on while a test has stopped the clock', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let tries = 0;
  await waitUntil(() => ++tries === 3);
  expect((await failureOf(waitUntil(() => false, SOON))).message).toContain('the last value was false');
});

it('gives a busy machine more time, never less, and no more than ten times', () => {
  expect(slowness()).toBeGreaterThanOrEqual(1);
  expect(slowness()).toBeLessThanOrEqual(10);
  expect(slowness(), 'measured once').toBe(slowness());
});
