// A client that attacks a service until it is told to stop, in a process of its own: what it sends takes no time from
// the client whose requests are measured. `bench/beside.ts` starts it.
import type { Account } from './api.ts';
import type { Attack } from './beside.ts';
import { bodiesOf, sendHostile } from './cases/hostile-bodies.ts';
import { searchAll } from './cases/hostile-searches.ts';
import { flood, messagesOf } from './cases/hostile-sockets.ts';

interface Job {
  url: string;
  account: Account;
  attack: Attack;
}

const { url, account, attack } = JSON.parse(process.argv[2]!) as Job;
const server = { url };
const outcomes: Record<string, number> = {};
let isDone = false;

function sender(): () => Promise<number> {
  if (attack.what === 'searches') return () => searchAll(server, account, attack.of);
  if (attack.what === 'messages') {
    const messages = messagesOf(attack.of);
    return () => flood(server, account, messages);
  }
  const bodies = bodiesOf(account, attack.of);
  let sent = 0;
  return () => sendHostile(server, account, bodies[sent++ % bodies.length]!);
}

const send = sender();
process.once('message', () => {
  isDone = true;
});
process.send!('started');
await Promise.all(
  Array.from({ length: attack.inFlight }, async () => {
    while (!isDone) {
      const outcome = await send();
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
  }),
);
process.send!(outcomes, () => process.disconnect());
