import type { Passwords } from '../../access/passwords.ts';
import type { PrismaClient } from '../../generated/prisma/client.ts';
import type { Caller } from '../../kernel/caller.ts';
import { invalidInput, wrongPassword } from '../../kernel/errors.ts';
import { sessionOf } from '../../kernel/principal.ts';
import { Lockout, lockedOut } from './lockout.ts';

/** For this long after a sign-in, nobody is asked for the password again. */
const FRESH_MINUTES = 10;

const wrongCurrent = () => wrongPassword('The current password is wrong.');

/**
 * Asks signed-in users once more for proof of who they are, before a change that could take the account away from them.
 */
export class CurrentPassword {
  readonly #prisma: PrismaClient;
  readonly #passwords: Passwords;
  readonly #lockout: Lockout;

  constructor({ prisma, passwords }: { prisma: PrismaClient; passwords: Passwords }) {
    this.#prisma = prisma;
    this.#passwords = passwords;
    this.#lockout = new Lockout(prisma);
  }

  /**
   * Wrong guesses count as failed sign-ins.
   * @param refusal the error to throw for a wrong password
   * @returns the hash that the password belongs to
   * @throws RATE_LIMIT_EXCEEDED while locked
   */
  async check(userId: string, password: string, refusal: () => Error = wrongCurrent): Promise<string | null> {
    const { passwordHash } = await this.#prisma.user.findUniqueOrThrow({
      where: { id: userId },
      select: { passwordHash: true },
    });
    await this.#lockout.check(userId);
    if (!(await this.#passwords.verify(passwordHash, password))) {
      const wait = await this.#lockout.failed(userId);
      throw wait > 0 ? lockedOut(wait) : refusal();
    }
    // among many simultaneous guesses, the right one must reveal no more than the wrong ones that locked the account
    await this.#lockout.check(userId);
    await this.#lockout.succeeded(userId);
    return passwordHash;
  }

  /**
   * Requires the password, or a sign-in within the last ten minutes: the only proof for accounts without a password.
   * @param path of the input field with the password
   * @param doing what asks for it
   * @throws FORBIDDEN `user:update` for API tokens, InputError when both are missing, else as `check`
   */
  async demand(
    caller: Caller,
    password: string | null | undefined,
    path: string[],
    doing = 'changing the e-mail address',
  ): Promise<void> {
    const { userId, sessionId } = sessionOf(caller, 'user:update');
    if (password) {
      // the caller is signed in: a 401 would make clients refresh and guess again
      await this.check(userId, password, () => invalidInput(path, 'this is not your password'));
      return;
    }
    const [fresh] = await this.#prisma.$queryRaw<object[]>`
      select 1 from sessions where id = ${sessionId} and created_at > now() - make_interval(mins => ${FRESH_MINUTES})`;
    if (!fresh)
      throw invalidInput(
        path,
        `${doing} requires your password, or a sign-in within the last ${FRESH_MINUTES} minutes`,
      );
  }
}
