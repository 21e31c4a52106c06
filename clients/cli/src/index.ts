#!/usr/bin/env node
import { CommanderError } from 'commander';
import { exitCodeOf, exitCodes, messageOf, objectOf } from './failures.ts';
import { programOf } from './program.ts';
import type { Globals } from './workbench.ts';

const { env, stdin, stdout, stderr } = process;
const program = programOf({ env, stdin, stdout, stderr });

try {
  await program.parseAsync(process.argv);
} catch (error) {
  if (error instanceof CommanderError) {
    // it has been said already; help is no failure
    process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage;
  } else {
    const isJson = program.opts<Globals>().json ?? process.argv.includes('--json');
    stderr.write(`${isJson ? JSON.stringify(objectOf(error)) : messageOf(error)}\n`);
    process.exitCode = exitCodeOf(error);
  }
}
