import type { Command } from 'commander';

/** Ends the help of a command with examples, which the tests run. */
export const withExamples = (command: Command, ...examples: string[]): Command =>
  command.addHelpText('after', `\nExample:\n${examples.map((line) => `  ${line}`).join('\n')}`);
