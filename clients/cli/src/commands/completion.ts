import { Argument, type Command, type Option } from 'commander';
import { withExamples } from '../help.ts';
import { type Surroundings, workbenchOf } from '../workbench.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** What may follow a command. */
interface Level {
  /** The names of the command, such as `secrets get`; empty for the program itself. */
  path: string;
  commands: readonly Command[];
  options: readonly Option[];
  /** Values that its argument may have. */
  values: readonly string[];
}

/** The program and all commands below it: what is added to them is completed. */
function levelsOf(command: Command, path: readonly string[] = []): Level[] {
  const commands = command.commands.filter((one) => one.name() !== 'help');
  const values = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const own = { path: path.join(' '), commands, options: command.options, values };
  return [own, ...commands.flatMap((one) => levelsOf(one, [...path, one.name()]))];
}

/** A description within single quotation marks of a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const flagsOf = (options: readonly Option[]): string[] =>
  options.flatMap(({ long, short }) => [long, short]).filter((flag) => flag !== undefined);

const withValue = (levels: readonly Level[]): string[] => [
  ...new Set(flagsOf(levels.flatMap(({ options }) => options.filter((one) => one.required || one.optional)))),
];

/** Walks over the words before the cursor, without options and their values. */
const bash = (name: string, levels: readonly Level[]): string => {
  const globals = flagsOf(levels[0]!.options);
  const cases = levels.map(({ path, commands, options, values }) => {
    const flags = [...new Set([...flagsOf(options), ...globals, '--help'])].join(' ');
    return `    '${path}') words='${[...commands.map((one) => one.name()), ...values].join(' ')}'; flags='${flags}' ;;`;
  });
  const paths = levels.slice(1).map(({ path }) => `'${path}'`);
  return `# completion of ${name} for bash: source it, or put it into ~/.local/share/bash-completion/completions/${name}
_${name}() {
  local word path='' next words='' flags='' skip='' at
  local current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  for (( at = 1; at < COMP_CWORD; at++ )); do
    word="\${COMP_WORDS[at]}"
    if [ -n "$skip" ]; then skip=''; continue; fi
    case "$word" in
      --) return 0 ;;
      ${withValue(levels).join('|')}) skip=1; continue ;;
      -*) continue ;;
    esac
    next="\${path:+$path }$word"
    case "$next" in
      ${paths.join('|')}) path="$next" ;;
    esac
  done
  if [ -n "$skip" ]; then return 0; fi
  case "$path" in
${cases.join('\n')}
  esac
  case "$current" in
    -*) COMPREPLY=( $(compgen -W "$flags" -- "$current") ) ;;
    *) COMPREPLY=( $(compgen -W "$words" -- "$current") ) ;;
  esac
}
complete -o default -F _${name} ${name}
`;
};

/** The same function: zsh runs completions of bash. */
const zsh = (name: string, levels: readonly Level[]): string =>
  `(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
autoload -Uz bashcompinit && bashcompinit
${bash(name, levels)}`;

const fish = (name: string, levels: readonly Level[]): string => {
  const lines = levels.flatMap(({ path, commands, options, values }) => {
    const isHere = ` -n "__${name}_at ${quoted(path)}"`;
    return [
      ...commands.map((one) => `complete -c ${name} -f${isHere} -a ${one.name()} -d ${quoted(one.description())}`),
      ...values.map((value) => `complete -c ${name} -f${isHere} -a ${value}`),
      ...options.map(({ long, short, description, required, optional }) =>
        [
          // the options of the program are good everywhere
          `complete -c ${name}${path === '' ? '' : isHere}`,
          short ? ` -s ${short.slice(1)}` : '',
          long ? ` -l ${long.slice(2)}` : '',
          required || optional ? ' -r' : '',
          ` -d ${quoted(description)}`,
        ].join(''),
      ),
    ];
  });
  const valued = withValue(levels).join(' ');
  const paths = levels.slice(1).map(({ path }) => `'${path}'`);
  return `# completion of ${name} for fish: put it into ~/.config/fish/completions/${name}.fish
function __${name}_at
  set -l path
  set -l skip
  for word in (commandline -opc)[2..]
    if test -n "$skip"
      set skip
      continue
    end
    if contains -- $word ${valued}
      set skip 1
      continue
    end
    string match -q -- '-*' $word; and continue
    if contains -- (string join ' ' $path $word) ${paths.join(' ')}
      set -a path $word
    end
  end
  test "$path" = "$argv[1]"
end
${lines.join('\n')}
`;
};

const scripts: Record<Shell, (name: string, levels: readonly Level[]) => string> = { bash, zsh, fish };

/** Adds `completion`. */
export function addCompletion(program: Command, around: Surroundings): void {
  withExamples(
    program
      .command('completion')
      .description('write what completes commands and options in your shell')
      .addArgument(new Argument('[shell]').choices(SHELLS))
      .action(async (given: Shell | undefined, _options, command: Command) => {
        const choices = () => Promise.resolve(SHELLS.map((value) => ({ value, label: value })));
        const ask = () => workbenchOf(command, around).pick({ option: '<shell>', noun: 'shell', choices });
        const shell = given ?? ((await ask()) as Shell);
        around.stdout.write(scripts[shell](program.name(), levelsOf(program)));
      }),
    'source <(platform completion bash)',
    'source <(platform completion zsh)',
    'platform completion fish > ~/.config/fish/completions/platform.fish',
  );
}
