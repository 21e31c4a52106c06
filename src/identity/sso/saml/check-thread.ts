// Runs in a thread of its own. Neither a message nor the key that comes with it leaves it in an error.
import { serveTasks } from '../../../platform/threads/thread-work.ts';
import { SsoRefusal } from '../sso-refusal.ts';
import { checkLogout } from './logout-check.ts';
import { readMetadata } from './metadata-check.ts';
import { checkSignIn, recipientOf } from './sign-in-check.ts';

const checks = { signIn: checkSignIn, recipient: recipientOf, logout: checkLogout, metadata: readMetadata };

/** What messages are checked for, by name. */
export type Checks = typeof checks;

/** How a check ended. */
export type CheckEnd<Accepted> = { accepted: Accepted } | { refusal: string };

serveTasks(async ({ name, input }: { name: keyof Checks; input: never }): Promise<CheckEnd<unknown>> => {
  try {
    return { accepted: await checks[name](input) };
  } catch (error) {
    if (error instanceof SsoRefusal) return { refusal: error.message };
    throw error;
  }
});
