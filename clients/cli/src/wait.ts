import { type Command, Option } from 'commander';
import type { WorkspaceEvent } from 'platform-management-client';
import { countOf } from './arguments.ts';
import { WaitedTooLongError } from './failures.ts';
import { working } from './output.ts';
import type { Workbench } from './workbench.ts';

const DEFAULT_SECONDS = 60;
/** Timers that are longer fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface WaitOptions {
  wait?: boolean;
  waitSeconds: number;
}

/** Adds `--wait` and its limit. */
export const withWait = (command: Command, until: string): Command =>
  command
    .option('--wait', `end when ${until}, by the live events of the workspace`)
    .addOption(
      new Option('--wait-seconds <n>', 'longest wait; then the exit code is 9')
        .argParser(countOf)
        .default(DEFAULT_SECONDS),
    );

/** Something that is begun, and ends with an event. */
export interface Work<Begun> {
  /** What somebody in a terminal sees while it is waited for. */
  what: string;
  begin: () => Promise<Begun>;
  /** Whether nothing has to be waited for. */
  isDone?: (begun: Begun) => boolean;
  isEnd: (event: WorkspaceEvent, begun: Begun) => boolean;
}

/**
 * Begins a piece of work, and follows the events of the workspace until it ends. They are followed before it begins:
 * no event is missed. @throws WaitedTooLongError
 */
export async function followed<Begun extends object>(
  bench: Workbench,
  { what, begin, isDone = () => false, isEnd }: Work<Begun>,
  seconds: number,
): Promise<{ begun: Begun; event: WorkspaceEvent | null }> {
  const place = await bench.workspace();
  const stop = new AbortController();
  const limit = () => setTimeout(() => stop.abort(), Math.min(seconds * 1_000, LONGEST_TIMER_MS));
  let timer = limit();
  let begun: { value: Begun } | undefined;
  const events = bench.client.events(place, { signal: stop.signal });
  const next = async () => {
    const { done, value } = await events.next();
    if (done) throw new Error('The events of the workspace ended before the work did: you have no access any more.');
    return value.event;
  };
  try {
    await next();
    // the work takes what it takes: the limit is one of the wait
    clearTimeout(timer);
    begun = { value: await begin() };
    const { value } = begun;
    if (isDone(value)) return { begun: value, event: null };
    timer = limit();
    const end = async () => {
      for (let event = await next(); ; event = await next()) if (isEnd(event, value)) return event;
    };
    return { begun: value, event: await working(bench, what, end, 0) };
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    const state = begun ? 'It was begun, and may still end.' : 'Nothing was begun.';
    throw new WaitedTooLongError(`Waited ${seconds} seconds. ${state}`, begun?.value ?? {});
  } finally {
    clearTimeout(timer);
    await events.return();
  }
}
