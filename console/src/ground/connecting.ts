import { ExchangeConnectionDocument } from '../generated/documents';
import { t } from '../texts';
import { textOf } from './answers';
import { client } from './client';
import { faultOf } from './problem';

/** How the page that providers send users back to (`/connections/callback`) reaches the pages of this service. */
const CHANNEL = 'connections.callback';

/** What that page brings, and what it is answered. */
interface Brought {
  type: 'code';
  state: string;
  code?: string;
  iss?: string;
  /** Why the provider granted nothing. */
  error?: string;
}

type Told = (problem: string) => void;

/** The authorizations that were begun here and have not come back, by their state. */
const begun = new Map<string, Told>();
let channel: BroadcastChannel | null = null;

async function exchanged({ state, code = '', iss, error }: Brought): Promise<string> {
  if (error !== undefined) return t.tools.notGranted;
  const variables = { state, code, ...(iss !== undefined && { iss }) };
  const answer = await client.mutation(textOf(ExchangeConnectionDocument), variables).toPromise();
  return answer.error ? faultOf(answer.error).message : '';
}

async function take(brought: Brought): Promise<void> {
  const told = begun.get(brought.state);
  if (brought.type !== 'code' || !told) return;
  begun.delete(brought.state);
  const problem = await exchanged(brought);
  channel?.postMessage({ type: 'done', state: brought.state, ok: problem === '', error: problem });
  told(problem);
}

/**
 * Finishes the authorization of an address when its window comes back. The window has no opener, which the provider's
 * page could lead away, and the console has no token to lend: so the page brings the code to this one, over a channel
 * that only pages of this origin hear.
 *
 * @param told gets what is wrong with it, or an empty text
 */
export function finishLater(authorizationUrl: string, told: Told): void {
  const state = new URL(authorizationUrl).searchParams.get('state');
  if (state === null) return;
  channel ??= new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<Brought>) => void take(data);
  begun.set(state, told);
}
