// A process that owns an embedded PostgreSQL until it is killed: `postgres-owner.fixture.ts DIR`.
import { startEmbeddedPostgres } from '../../../src/platform/postgres/postgres-embedded.ts';
import { quietLogger } from '../../support/quiet-logger.ts';

const server = await startEmbeddedPostgres({ dir: process.argv[2] ?? '', logger: quietLogger });
process.send?.({ url: server.url, pid: server.pid });
