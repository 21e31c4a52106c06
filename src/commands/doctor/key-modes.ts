import { accessSync, constants, type Stats, statSync } from 'node:fs';

/** Whether a folder belongs to somebody else, and this process may only read it: as a Secret that is mounted. */
export function isReadOnlyOfOthers(folder: string): boolean {
  if (statSync(folder).uid === process.getuid?.()) return false;
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

/**
 * Whether others may read a file of keys, or enter their folder.
 * @param isOfOthers Kubernetes mounts a Secret as files of root, which the service reads as the group of its pod: that
 * group is nobody else, and the folder is open by its mode in a mount that no other pod has
 */
export function mayOthersRead(entry: Pick<Stats, 'mode' | 'isDirectory'>, isOfOthers: boolean): boolean {
  if (!isOfOthers) return (entry.mode & 0o077) !== 0;
  return !entry.isDirectory() && (entry.mode & 0o007) !== 0;
}
