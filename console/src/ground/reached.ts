/** The cursors up to which streams were read, by the ids of their workspaces and organizations. */
const cursors = new Map<string, string>();

/** How far each stream was read. It goes on from there, also after its place was not shown for a while. */
export const reached = {
  /** Where a stream goes on; `undefined` before its place was shown. */
  of: (id: string): string | undefined => cursors.get(id),
  note: (id: string, cursor: string): void => void cursors.set(id, cursor),
  /** Says where the streams of places begin that were not shown yet: call it before anything of them is read. */
  begin(cursor: string, ids: readonly string[]): void {
    for (const id of ids) if (!cursors.has(id)) cursors.set(id, cursor);
  },
};
