import { spawnSync } from 'node:child_process';

const SERVICE = 'platform-management-cli';
/** Long enough to unlock a keyring by hand. */
const TIMEOUT_MS = 60_000;

/** A keyring that is not there, or does not do what it is asked. The message says why, and holds no secret. */
export class KeyringError extends Error {}

interface Call {
  args: string[];
  /** What is secret goes by stdin: others see the arguments of a program. */
  input?: string;
}

/** A program that reaches the keyring of a system. */
interface Program {
  file: string;
  store: (id: string, label: string, text: string) => Call;
  lookup: (id: string) => Call;
  clear: (id: string) => Call;
  /** Whether an answer says that there is no such entry. */
  isAbsent: (status: number | null, err: string) => boolean;
  textIn: (out: string) => string;
}

/** Of libsecret: GNOME Keyring, KWallet, KeePassXC and others. */
const secretTool: Program = {
  file: 'secret-tool',
  store: (id, label, input) => ({ args: ['store', '--label', label, ...attributesOf(id)], input }),
  lookup: (id) => ({ args: ['lookup', ...attributesOf(id)] }),
  clear: (id) => ({ args: ['clear', ...attributesOf(id)] }),
  isAbsent: (status, err) => status === 1 && err === '',
  textIn: (out) => out,
};
const attributesOf = (id: string) => ['service', SERVICE, 'account', id];

const NO_SUCH_ITEM = 44;
/** Of macOS. With `-i` it reads its command from stdin; in Base64, nothing of the text has a meaning to it. */
const security: Program = {
  file: 'security',
  store: (id, _label, text) => ({
    args: ['-i'],
    input: `add-generic-password -U -s ${SERVICE} -a ${id} -w ${Buffer.from(text).toString('base64')}\n`,
  }),
  lookup: (id) => ({ args: ['find-generic-password', '-s', SERVICE, '-a', id, '-w'] }),
  clear: (id) => ({ args: ['delete-generic-password', '-s', SERVICE, '-a', id] }),
  isAbsent: (status) => status === NO_SUCH_ITEM,
  textIn: (out) => Buffer.from(out.trim(), 'base64').toString('utf8'),
};

const programs: Partial<Record<NodeJS.Platform, Program>> = {
  linux: secretTool,
  freebsd: secretTool,
  darwin: security,
};

/** The keyring of the user, by the program that the system has for it: nothing is installed for it. */
export class Keyring {
  readonly #env: NodeJS.ProcessEnv;
  readonly #program: Program | undefined;

  constructor(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform) {
    this.#env = env;
    this.#program = programs[platform];
  }

  /** Keeps a text, in place of what was there. @throws KeyringError unless it can be read again as it was */
  set(id: string, label: string, text: string): void {
    this.#run((program) => program.store(id, label, text));
    // programs cut what is too long for them, and say that all is well
    if (this.get(id) === text) return;
    this.remove(id);
    throw new KeyringError('it does not keep all of it');
  }

  /** @throws KeyringError */
  get(id: string): string | null {
    const out = this.#run((program) => program.lookup(id));
    return out === null ? null : this.#program!.textIn(out);
  }

  /** @throws KeyringError */
  remove(id: string): void {
    this.#run((program) => program.clear(id));
  }

  /** @returns what the program wrote; `null` if there is no such entry */
  #run(callOf: (program: Program) => Call): string | null {
    const program = this.#program;
    if (!program) throw new KeyringError('there is none that this program knows');
    const { args, input = '' } = callOf(program);
    const options = { env: this.#env, input, encoding: 'utf8', timeout: TIMEOUT_MS, windowsHide: true } as const;
    const { error, status, stdout, stderr } = spawnSync(program.file, args, options);
    if (error) throw new KeyringError(reasonOf(error, program.file));
    const err = stderr.trim();
    if (status === 0) return stdout;
    if (program.isAbsent(status, err)) return null;
    throw new KeyringError(err.split('\n').at(-1) || `${program.file} ended with ${status}`);
  }
}

function reasonOf(error: NodeJS.ErrnoException, file: string): string {
  if (error.code === 'ENOENT') return `${file} is not installed`;
  return error.code === 'ETIMEDOUT' ? `${file} did not answer` : error.message;
}
