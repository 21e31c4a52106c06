#!/usr/bin/env node
import { CommanderError } from 'commander';
import { exitCodeOf, exitCodes, messageOf, objectOf } from './failures.ts';
import { programOf } from './program.ts';

const { env, stdin, stdout, stderr } = process;
const isJson = () => process.argv.includes('--json');
const program = programOf({ env, stdin, stdout, stderr }, isJson);
// whoever reads has enough, as `head` does
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await program.parseAsync(process.argv);
} catch (error) {
  if (error instanceof CommanderError) {
    // it has been said already, unless it is for a program; help is no failure
    if (error.exitCode !== 0 && isJson())
      stderr.write(`${JSON.stringify({ error: 'USAGE', message: error.message })}\n`);
    process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage;
  } else {
    stderr.write(`${isJson() ? JSON.stringify(objectOf(error)) : messageOf(error)}\n`);
    process.exitCode = exitCodeOf(error);
  }
}
