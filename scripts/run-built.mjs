// `node scripts/run-built.mjs NAME ARGUMENTS…`: builds what changed, then runs that entry of the bundle in the same
// process, so that it receives signals directly. It sees its arguments as if it had been started itself. What a build
// tells goes where the log of the service will go; commands have their standard output for their own.
import { pathToFileURL } from 'node:url';
import { buildIfChanged, builtEntry } from './build.mjs';
import { BuildProgress, isJsonLog } from './build-progress.mjs';

const [name = ''] = process.argv.splice(2, 1);
const isService = name === 'main';
const isJson = isService && isJsonLog(process.argv);
const progress = new BuildProgress({ fd: isService ? 1 : 2, isJson });
try {
  buildIfChanged((step) => progress.begin(step));
} catch (error) {
  const msg = error instanceof Error ? error.message : String(error);
  console.error(isJson ? JSON.stringify({ level: 'fatal', time: new Date().toISOString(), msg }) : msg);
  process.exit(1);
}
await progress.end();
process.argv[1] = builtEntry(name);
await import(pathToFileURL(builtEntry(name)).href);
