import { createContext, type ReactNode, use, useEffect, useMemo, useRef } from 'react';
import {
  OrganizationEventsDocument,
  WorkspaceEventsDocument,
  type WorkspaceEventsSubscription,
} from '../generated/documents';
import { consolePath, goToSignIn, leave } from './address';
import { useStream } from './answers';
import { usePlace } from './place';
import { reached } from './reached';
import { streamState, useStreamTurn } from './stream-state';

export type LiveEvent = WorkspaceEventsSubscription['workspaceEvents'];
type Listener = (event: LiveEvent) => void;

const LiveContext = createContext<{ listen: (listener: Listener) => () => void } | null>(null);

const FINAL = ['membership_revoked', 'workspace_deleted', 'organization_deleted'];

/** What the last event of a stream asks for: to begin again, to sign in, or to leave a place that is gone. */
function follow({ type, data }: { type: string; data: Record<string, unknown> }): void {
  if (type !== 'stream.closing') return;
  const { reason } = data;
  if (reason === 'token_revoked') goToSignIn();
  else if (FINAL.includes(String(reason))) leave(consolePath);
  else setTimeout(() => streamState.begin(), 1_000);
}

/** Follows the workspace and its organization while a view of it is open. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const { orgId, workspaceId } = usePlace();
  const listeners = useRef(new Set<Listener>());
  const turn = useStreamTurn();
  // read when streams begin again, and only then
  // biome-ignore lint/correctness/useExhaustiveDependencies: a turn is a new beginning
  const after = useMemo(
    () => ({ organization: reached.of(orgId), workspace: reached.of(workspaceId) }),
    [turn, orgId, workspaceId],
  );
  useStream(WorkspaceEventsDocument, { orgId, workspaceId, after: after.workspace }, ({ workspaceEvents: event }) => {
    reached.note(workspaceId, event.cursor);
    follow(event);
    for (const listener of listeners.current) listener(event);
  });
  useStream(OrganizationEventsDocument, { orgId, after: after.organization }, ({ organizationEvents: event }) => {
    reached.note(orgId, event.cursor);
    follow(event);
  });
  const live = useMemo(
    () => ({
      listen: (listener: Listener) => {
        listeners.current.add(listener);
        return () => void listeners.current.delete(listener);
      },
    }),
    [],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** Runs at most once in half a second, or some other time, while things happen, and once after them. */
export function useAfterEvents(run: () => void, pauseMs = 500): void {
  const live = use(LiveContext);
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = live?.listen(() => {
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current();
      }, pauseMs);
    });
    return () => {
      clearTimeout(timer);
      end?.();
    };
  }, [live, pauseMs]);
}
