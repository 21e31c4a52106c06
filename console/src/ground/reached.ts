/** By the ids of workspaces and organizations. */
const cursors = new Map<string, string>();

/** How far the stream of each workspace and organization was read: it goes on from there when it is shown again. */
export const reached = {
  /** Where a stream goes on; `undefined` before its place was shown. */
  of: (id: string): string | undefined => cursors.get(id),
  note: (id: string, cursor: string): void => void cursors.set(id, cursor),
  /** Says where the streams of places begin that were not shown yet: call it before anything of them is read. */
  begin(cursor: string, ids: readonly string[]): void {
    for (const id of ids) if (!cursors.has(id)) cursors.set(id, cursor);
  },
};
