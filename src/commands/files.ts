// Looks after the files of artifacts, with or without a running service: `doctor` lists rows without their bytes, and
// bytes without their row.
import { type Config, commandLine, loadConfig } from '../config.ts';
import { Sql } from '../data/sql.ts';
import { examineFiles } from '../knowledge/files/doctor.ts';
import { Storage } from '../platform/storage/storage.ts';
import { withDatabase } from './with-database.ts';

const USAGE = `Usage: npm run files -- COMMAND
  doctor   lists every file on which the database and the file store disagree; exit code 1 if there is one`;

async function runDoctor(config: Config): Promise<void> {
  const storage = new Storage(config);
  await withDatabase(config, 'files', async ({ pool }) => {
    let findings = 0;
    const { rows, objects } = await examineFiles(new Sql(pool), storage, ({ key, fileId, reason }) => {
      findings++;
      console.log(`${key} ${fileId ?? '-'}: ${reason}`);
    });
    console.log(
      `${rows} kept files, ${objects} stored objects: ${findings === 0 ? 'all agree.' : `${findings} findings.`}`,
    );
    if (findings > 0) process.exitCode = 1;
  });
  await storage.close();
}

try {
  const [command, ...more] = commandLine();
  if (command !== 'doctor' || more.length > 0) throw new Error(USAGE);
  await runDoctor(loadConfig());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
