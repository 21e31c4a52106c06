import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';

/**
 * Writes a new file: it appears complete or not at all, and is on disk afterwards.
 * @returns false when another process was faster
 */
export function publishFile(file: string, text: string, mode = 0o600): boolean {
  const draft = draftOf(file, text, mode);
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Replaces a file, mode 0600: a crash of the machine leaves the old file or the new one, never a partial one. */
export function replaceFile(file: string, text: string): void {
  renameSync(draftOf(file, text, 0o600), file);
}

function draftOf(file: string, text: string, mode: number): string {
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const handle = openSync(draft, 'wx', mode);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  return draft;
}
