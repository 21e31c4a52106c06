import { existsSync, readFileSync } from 'node:fs';
import { buildChecksFile, isFromSources } from '../paths.ts';

/** What the build checks, so that a start does it only for files that are not those of the build. */
export type BuildCheck = 'operations' | 'recipes';

/** Digests of the files without a mistake, written by `scripts/check-built.mjs` with the code that runs now. */
const digests: Partial<Record<BuildCheck, string>> =
  !isFromSources && existsSync(buildChecksFile)
    ? (JSON.parse(readFileSync(buildChecksFile, 'utf8')) as Record<BuildCheck, string>)
    : {};

/** Whether the build found no mistake in files with this digest. Never so when the service runs from its sources. */
export const wereChecked = (what: BuildCheck, digest: string): boolean => digests[what] === digest;
