import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Writes a generated file that is committed. With `--check` on the command line it only compares, and fails when the
 * file is stale.
 */
export function writeOrCheck(file: string, text: string): void {
  const isCurrent = existsSync(file) && readFileSync(file, 'utf8') === text;
  const name = path.relative(process.cwd(), file);
  if (process.argv.includes('--check')) {
    console.log(isCurrent ? `${name} is up to date.` : `${name} is stale: run \`npm run generate\` and commit it.`);
    if (!isCurrent) process.exitCode = 1;
    return;
  }
  if (isCurrent) {
    console.log(`${name} is up to date.`);
    return;
  }
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  console.log(`Wrote ${name}.`);
}
