import { ExchangeConnectionDocument } from '../generated/documents';
import { t } from '../texts';
import { textOf } from './answers';
import { begunStates } from './begun-states';
import { client, outlivingPage } from './client';
import { faultOf } from './problem';

/** How the page that providers send users back to (`/connections/callback`) reaches the pages of this service. */
const CHANNEL = 'connections.callback';

/** What that page brings. */
interface Brought {
  type: 'code';
  state: string;
  code?: string;
  iss?: string;
  /** Why the provider granted nothing. */
  error?: string;
}

/** What that page is told. */
interface Done {
  type: 'done';
  state: string;
  ok: boolean;
  error: string;
}

/** What a page says when it begins to listen. */
interface Listening {
  type: 'listening';
}

type Told = (problem: string) => void;

/** Who is told of the authorizations that this page has begun, by their state. */
const begun = new Map<string, Told>();
let channel: BroadcastChannel | null = null;

function forget(state: string): void {
  begunStates.forget(state);
  begun.delete(state);
}

async function exchanged({ state, code = '', iss, error }: Brought): Promise<string> {
  if (error !== undefined) return t.tools.notGranted;
  const variables = { state, code, ...(iss !== undefined && { iss }) };
  const answer = await client.mutation(textOf(ExchangeConnectionDocument), variables, outlivingPage).toPromise();
  return answer.error ? faultOf(answer.error).message : '';
}

async function take(brought: Brought): Promise<void> {
  const { state } = brought;
  const told = begun.get(state);
  forget(state);
  const problem = await exchanged(brought);
  channel?.postMessage({ type: 'done', state, ok: problem === '', error: problem } satisfies Done);
  told?.(problem);
}

/** A tab that was duplicated knows the states of the first one: the code is taken by one of them. */
async function takeAlone(brought: Brought): Promise<void> {
  const { state } = brought;
  if (!begunStates.has(state)) return;
  if (!('locks' in navigator)) return take(brought);
  await navigator.locks.request(`console-connecting ${state}`, { ifAvailable: true }, (lock) =>
    lock ? take(brought) : undefined,
  );
}

function listen(): void {
  if (channel) return;
  channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<Brought | Done | Listening>) => {
    if (data.type === 'code') void takeAlone(data);
    // another tab has finished it
    else if (data.type === 'done') forget(data.state);
  };
  // a code that came while this page was being loaded was missed: its window sends it again
  channel.postMessage({ type: 'listening' } satisfies Listening);
}

if (begunStates.any()) listen();

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
  begunStates.keep(state);
  begun.set(state, told);
  listen();
}
