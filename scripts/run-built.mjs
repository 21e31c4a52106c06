// `node scripts/run-built.mjs NAME ARGUMENTS…`: builds what changed, then runs that entry of the bundle in the same
// process, so that it receives signals directly. It sees its arguments as if it had been started itself.
import { pathToFileURL } from 'node:url';
import { buildIfChanged, builtEntry } from './build.mjs';

try {
  buildIfChanged();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
const [name = ''] = process.argv.splice(2, 1);
process.argv[1] = builtEntry(name);
await import(pathToFileURL(builtEntry(name)).href);
