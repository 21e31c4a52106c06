import { Command } from 'commander';
import { addCompletion } from './commands/completion.ts';
import { addDoctor } from './commands/doctor.ts';
import { addEnvironmentCommands } from './commands/environments.ts';
import { addFileCommands } from './commands/files.ts';
import { addPlaceCommands } from './commands/places.ts';
import { addRawCommands } from './commands/raw.ts';
import { addRecipeCommands } from './commands/recipes.ts';
import { addSecretCommands } from './commands/secrets.ts';
import { addSessionCommands } from './commands/session.ts';
import { addTokenCommands } from './commands/tokens.ts';
import { addToolCommands } from './commands/tools.ts';
import { addWatchCommands } from './commands/watch.ts';
import { version } from './version.ts';
import type { Surroundings } from './workbench.ts';

const HELP = `
Begin:
  platform register --url URL       make an account and sign in; or, with an account: platform login --url URL
  platform workspace create NAME    then: platform workspace use NAME
  platform secrets set NAME         then: platform secrets run --secret NAME -- PROGRAM
  platform files upload FILE --wait then: platform files search WORDS
  platform events tail              what others do, live

Variables: PLATFORM_URL, PLATFORM_TOKEN, PLATFORM_ORG, PLATFORM_WORKSPACE, PLATFORM_NAMESPACE, PLATFORM_PROFILE,
PLATFORM_NO_KEYRING. An option wins over a variable, and a variable over the profile.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not signed in, 4 not allowed, 5 not found, 6 conflict,
7 invalid input, 8 the service cannot answer, 9 waited too long.`;

/** The program with all its commands. */
export function programOf(around: Surroundings, isJson: () => boolean): Command {
  const program = new Command('platform')
    .description('The platform management API on the command line.')
    .version(version)
    .option('--profile <name>', 'profile to use')
    .option('--url <url>', 'address of the service')
    .option('--token <token>', 'API token; better: the variable PLATFORM_TOKEN')
    .option('--org <id>', 'organization')
    .option('--workspace <id>', 'workspace')
    .option('--namespace <id>', 'namespace; default: default')
    .option('--json', 'print JSON, ask nothing')
    .addHelpText('after', HELP)
    .enablePositionalOptions(false)
    .showHelpAfterError('(add --help for what is possible)')
    .configureOutput({
      writeOut: (text) => void around.stdout.write(text),
      // programs get it as JSON, with the other errors
      writeErr: (text) => void (isJson() || around.stderr.write(text)),
    })
    .exitOverride();
  const add = [
    addSessionCommands,
    addPlaceCommands,
    addSecretCommands,
    addFileCommands,
    addEnvironmentCommands,
    addToolCommands,
    addTokenCommands,
    addWatchCommands,
    addRecipeCommands,
    addRawCommands,
    addDoctor,
    addCompletion,
  ];
  for (const commands of add) commands(program, around);
  return program;
}
