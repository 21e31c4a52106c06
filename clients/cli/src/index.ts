#!/usr/bin/env node
import { runCommand } from './run.ts';

const { argv, env, stdin, stdout, stderr } = process;
// whoever reads has enough, as `head` does
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

process.exitCode = await runCommand(argv.slice(2), { env, stdin, stdout, stderr });
