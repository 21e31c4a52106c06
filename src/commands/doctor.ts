// Looks at all that the service needs, with or without a running one: one line for each finding, with what to do.
import { type Config, ConfigError, commandLine, loadConfig } from '../config.ts';
import { createLogger } from '../platform/logger.ts';
import { databaseChecks } from './doctor/database-checks.ts';
import { type DoctorFinding, fail, findingsOf } from './doctor/finding.ts';
import { outsideChecks } from './doctor/outside-checks.ts';
import { withDatabase } from './with-database.ts';

const USAGE = `Usage: npm run doctor [-- --json]
  looks at settings, database, keys, files, mail and jobs; exit code 1 if something fails`;

const NAME_WIDTH = 11;

function print({ check, status, message, remedy }: DoctorFinding): void {
  console.log(`${status.padEnd(4)}  ${check.padEnd(NAME_WIDTH)} ${message}${remedy ? ` ${remedy}` : ''}`);
}

async function examine(config: Config, tell: (finding: DoctorFinding) => void): Promise<void> {
  const tellAll = async (checks: readonly Parameters<typeof findingsOf>[0][]): Promise<void> => {
    for (const check of checks) for (const finding of await findingsOf(check)) tell(finding);
  };
  await tellAll(outsideChecks(config));
  const logger = createLogger({ logLevel: 'silent' });
  const reached: { error?: unknown } = {};
  await withDatabase(config, 'doctor', async (database) => {
    // an unreachable one is one finding, not seven
    await database.pool.query('select 1');
    await tellAll(await databaseChecks(config, database, logger));
  }).catch((error: unknown) => {
    reached.error = error;
  });
  if (reached.error === undefined) return;
  const unreachable = {
    name: 'database',
    remedy: 'Check that DATABASE_URL points to a running PostgreSQL and that its role may sign in.',
    run: () => Promise.reject(reached.error as Error),
  };
  await tellAll([unreachable]);
}

async function run(isJson: boolean): Promise<void> {
  const findings: DoctorFinding[] = [];
  const tell = (finding: DoctorFinding): void => {
    findings.push(finding);
    if (!isJson) print(finding);
  };
  try {
    await examine(loadConfig(), tell);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems)
      tell({ check: 'settings', ...fail(problem, 'The service does not start until this is corrected.') });
  }
  if (isJson) console.log(JSON.stringify(findings, null, 2));
  if (findings.some(({ status }) => status === 'fail')) process.exitCode = 1;
}

try {
  const [option, ...more] = commandLine();
  if ((option !== undefined && option !== '--json') || more.length > 0) throw new Error(USAGE);
  await run(option === '--json');
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
