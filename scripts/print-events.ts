// Writes docs/api/events.md from the tables of events and resources. With --check it only fails when the file is stale.
import path from 'node:path';
import { eventsPage } from '../src/live/events/async-api.ts';
import { projectRoot } from '../src/paths.ts';
import { writeOrCheck } from './write-or-check.ts';

writeOrCheck(path.join(projectRoot, 'docs', 'api', 'events.md'), eventsPage());
