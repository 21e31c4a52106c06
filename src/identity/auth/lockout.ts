import type { PrismaClient } from '../../generated/prisma/client.ts';
import { rateLimited } from '../../kernel/errors.ts';

const MAX_FAILURES = 10;
const WINDOW_SECONDS = 15 * 60;
const FIRST_LOCK_SECONDS = 15 * 60;
const LONGEST_LOCK_SECONDS = 4 * 3600;

/** The error for callers while they are locked. */
export const lockedOut = (seconds: number) => rateLimited(seconds, 'Too many failed sign-ins. Try again later.');

/** The longest lock, four hours, is reached long before. The count itself goes on. */
const MOST_DOUBLINGS = 10;

/** Removes failures that no longer count. */
export const lockoutRetention = [
  `delete from login_failures where window_start < now() - interval '1 day' and coalesce(locked_until, now()) <= now()`,
];

/**
 * Locks an account after ten failed sign-ins in 15 minutes: first for 15 minutes, then twice as long each time, at most
 * four hours (defaults §0.5). A name without an account is locked in the same way, so a lock reveals nothing.
 */
export class Lockout {
  readonly #prisma: PrismaClient;

  constructor(prisma: PrismaClient) {
    this.#prisma = prisma;
  }

  /** @throws RATE_LIMIT_EXCEEDED while locked, even with the right password */
  async check(key: string): Promise<void> {
    const seconds = await this.#secondsLeft(key);
    if (seconds > 0) throw lockedOut(seconds);
  }

  /**
   * Counts a failure, and locks at the tenth. It is one statement, so all parallel guesses count and the eleventh
   * learns nothing.
   * @returns the seconds left if another request has locked it meanwhile, else 0
   */
  async failed(key: string): Promise<number> {
    const counted = await this.#prisma.$executeRaw`
      insert into login_failures as f (key, failures, window_start) values (${key}, 1, now())
      on conflict (key) do update set
        failures = case when f.window_start < now() - make_interval(secs => ${WINDOW_SECONDS}) then 1
          when f.failures + 1 >= ${MAX_FAILURES} then 0 else f.failures + 1 end,
        window_start = case when f.window_start < now() - make_interval(secs => ${WINDOW_SECONDS}) then now()
          else f.window_start end,
        locked_until = case when f.failures + 1 >= ${MAX_FAILURES}
            and f.window_start >= now() - make_interval(secs => ${WINDOW_SECONDS})
          then now() + make_interval(secs => least(${LONGEST_LOCK_SECONDS},
            ${FIRST_LOCK_SECONDS} * power(2, least(${MOST_DOUBLINGS}, f.lock_count))))
          else f.locked_until end,
        lock_count = case when f.failures + 1 >= ${MAX_FAILURES}
            and f.window_start >= now() - make_interval(secs => ${WINDOW_SECONDS})
          then f.lock_count + 1 else f.lock_count end
      where f.locked_until is null or f.locked_until <= now()`;
    return counted === 0 ? this.#secondsLeft(key) : 0;
  }

  /** The right password resets the count. */
  async succeeded(key: string): Promise<void> {
    await this.#prisma.loginFailure.deleteMany({ where: { key } });
  }

  async #secondsLeft(key: string): Promise<number> {
    const row = await this.#prisma.loginFailure.findUnique({ where: { key }, select: { lockedUntil: true } });
    return row?.lockedUntil ? Math.max(0, (row.lockedUntil.getTime() - Date.now()) / 1000) : 0;
  }
}
