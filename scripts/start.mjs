// `npm start`: builds what changed, then runs the service in the same process, so that it receives signals directly.
import { pathToFileURL } from 'node:url';
import { buildIfChanged, builtService } from './build.mjs';

try {
  buildIfChanged();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
await import(pathToFileURL(builtService).href);
