import { describe, expect, test } from 'vitest';
import { afterFailure, lifetimeOf } from '../../../src/tools/connections/connection-state.ts';

const NOW = Date.UTC(2026, 10, 22);
const at = (seconds: number) => new Date(NOW + seconds * 1_000);

describe('an access token is refreshed', () => {
  test.each([
    ['15 minutes before its end', 3_600, 2_700],
    ['at half its life if that is short', 600, 300],
    ['at once if it has none', 0, 0],
  ])('%s', (_title, lifetime, refreshed) => {
    expect(lifetimeOf(lifetime, true, NOW)).toEqual({ expiresAt: at(lifetime), refreshAt: at(refreshed) });
  });

  test('never, if the provider does not say when it ends', () => {
    expect(lifetimeOf(null, true, NOW)).toEqual({ expiresAt: null, refreshAt: null });
  });

  test('not without a refresh token: then its end is noticed', () => {
    expect(lifetimeOf(600, false, NOW)).toEqual({ expiresAt: at(600), refreshAt: at(600) });
  });
});

describe('after a failure', () => {
  const connected = { status: 'connected', expiresAt: at(100_000) };
  const waitAfter = (refreshFailures: number, random: number) =>
    (afterFailure({ ...connected, refreshFailures }, NOW, random).refreshAt.getTime() - NOW) / 1_000;

  test('the waits double from 30 seconds to an hour, a tenth less at most', () => {
    expect([0, 1, 2, 6, 7, 50].map((failures) => waitAfter(failures, 1))).toEqual([30, 60, 120, 1_920, 3_600, 3_600]);
    expect(waitAfter(0, 0)).toBe(27);
  });

  test.each([
    ['connected while the token lives', 60, 5, 'connected'],
    ['expired when it has ended', -1, 0, 'expired'],
    ['in error after three', -1, 2, 'error'],
  ])('%s', (_title, ends, refreshFailures, status) => {
    expect(afterFailure({ status: 'connected', refreshFailures, expiresAt: at(ends) }, NOW, 1)).toMatchObject({
      status,
      refreshFailures: refreshFailures + 1,
    });
  });

  test('the end of the token is never missed', () => {
    const { refreshAt } = afterFailure({ status: 'connected', refreshFailures: 9, expiresAt: at(45) }, NOW, 1);
    expect(refreshAt).toEqual(at(45));
  });
});
