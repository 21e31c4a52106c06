import { createContext, type ReactNode, use, useEffect, useMemo, useRef } from 'react';
import {
  OrganizationEventsDocument,
  WorkspaceEventsDocument,
  type WorkspaceEventsSubscription,
} from '../generated/documents';
import { useStream } from './answers';
import { usePlace } from './place';

export type LiveEvent = WorkspaceEventsSubscription['workspaceEvents'];
type Listener = (event: LiveEvent) => void;

const LiveContext = createContext<{ listen: (listener: Listener) => () => void } | null>(null);

/** Follows the workspace and its organization as long as a view of it is open. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const { orgId, workspaceId } = usePlace();
  const listeners = useRef(new Set<Listener>());
  useStream(WorkspaceEventsDocument, { orgId, workspaceId }, ({ workspaceEvents }) => {
    for (const listener of listeners.current) listener(workspaceEvents);
  });
  useStream(OrganizationEventsDocument, { orgId });
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

/** Runs at most once in half a second while things happen, and once after them. */
export function useAfterEvents(run: () => void): void {
  const live = use(LiveContext);
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = live?.listen(() => {
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current();
      }, 500);
    });
    return () => {
      clearTimeout(timer);
      end?.();
    };
  }, [live]);
}
