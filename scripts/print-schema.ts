// Writes schema.graphql from the schema in src/, sorted so that its diff shows only real changes.
// With --check it writes nothing and fails when the file is stale. The page of events is written, or checked, with it.
import path from 'node:path';
import { lexicographicSortSchema, printSchema } from 'graphql';
import { projectRoot } from '../src/paths.ts';
import { schema } from '../src/wiring/schema.ts';
import './print-events.ts';
import { writeOrCheck } from './write-or-check.ts';

writeOrCheck(path.join(projectRoot, 'schema.graphql'), `${printSchema(lexicographicSortSchema(schema))}\n`);
