import type { Account } from '../api.ts';
import { reportAttack } from '../beside.ts';
import type { Rounds } from '../load.ts';
import type { ServerProcess } from '../server-process.ts';
import { LARGE_FORMS } from './hostile-bodies.ts';

/** Requests that one client keeps in flight. */
const BODIES_IN_FLIGHT = 10;

/**
 * What hostile forms of one user, and hostile bodies of somebody who has not signed in, do to the requests of another
 * one. `BENCH_ONLY=hostile npm run bench` has it.
 */
export async function hostileForms(
  product: ServerProcess,
  [attacker, account]: readonly [Account, Account],
  rounds: Rounds,
): Promise<void> {
  const victim = { product, account, path: '/v1/auth/me', rounds };
  for (const of of LARGE_FORMS)
    await reportAttack(`forms of ${of}, one after the other`, victim, attacker, { what: 'bodies', of, inFlight: 1 });
  const attack = { what: 'bodies', of: 'strangers', inFlight: BODIES_IN_FLIGHT } as const;
  await reportAttack(`${BODIES_IN_FLIGHT} bodies of strangers in flight`, victim, attacker, attack);
}
