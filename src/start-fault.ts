import { type Config, ConfigError } from './config.ts';

/** What is known of an error of the system or of PostgreSQL: those of Node and of the driver have the same fields. */
interface Fault extends Error {
  code?: string;
  syscall?: string;
  path?: string;
  cause?: unknown;
}

type Settings = Pick<Config, 'host' | 'port' | 'dataDir'>;

/** `bind` is that of a worker, for which its parent listens. */
const LISTENING = new Set(['listen', 'bind', 'getaddrinfo']);

/** Errors of `listen`, by their codes. */
const listening: Record<string, (config: Settings) => string> = {
  EADDRINUSE: ({ host, port }) => `Port ${port} of ${host} is in use. Stop the other process, or set PORT.`,
  EADDRNOTAVAIL: ({ host }) =>
    `HOST is '${host}', which is not an address of this machine. ` +
    'Set HOST to an address of this machine, or to 0.0.0.0 for all addresses.',
  ENOTFOUND: ({ host }) => `HOST is '${host}', a name that has no address. Set HOST to an address of this machine.`,
  EACCES: ({ port }) => `This user may not listen on port ${port}. Set PORT to 1024 or higher.`,
};

/** Errors of files. */
const filing: Record<string, (at: string) => string> = {
  EACCES: (at) => `This user may not write to ${at}. Give the folder to the user of the service, or set DATA_DIR.`,
  EPERM: (at) => `This user may not write to ${at}. Give the folder to the user of the service, or set DATA_DIR.`,
  ENOTDIR: (at) => `${at} cannot be created, because a part of this path is a file. Set DATA_DIR to a folder.`,
  EROFS: (at) => `${at} is on a read-only disk. Set DATA_DIR to a writable folder.`,
  ENOSPC: (at) => `The disk of ${at} is full. Make room, or set DATA_DIR to a folder on another disk.`,
  EDQUOT: (at) => `The quota of the disk of ${at} is used up. Make room, or set DATA_DIR to a folder on another disk.`,
};

/** Errors of PostgreSQL, by SQLSTATE. */
const database: Record<string, (message: string) => string> = {
  '42501': (message) =>
    `The database refuses the role of DATABASE_URL: ${message}. Make the role the owner of the database ` +
    '(`alter database … owner to …`), or grant it `create` on the database and on its schema public.',
  '53100': () => 'The disk of the database is full. Make room there.',
  '53300': () => 'The database has no free connection. Raise its max_connections, or lower DATABASE_POOL_SIZE.',
};

/** Why a start failed, in a sentence with what to do about it. */
export function startFault(error: unknown, config: Settings): string {
  if (!(error instanceof Error)) return String(error);
  const fault = causeOf(error);
  if (fault.code !== undefined) {
    if (LISTENING.has(fault.syscall ?? '')) {
      const said = listening[fault.code];
      if (said) return said(config);
    }
    const ofFile = filing[fault.code];
    if (ofFile) return ofFile(fault.path ?? config.dataDir);
    const ofDatabase = database[fault.code];
    if (ofDatabase) return ofDatabase(fault.message);
  }
  // what initdb and the server say of it
  if (/No space left on device/.test(error.message)) return filing.ENOSPC!(config.dataDir);
  return error.message;
}

/** The error at the bottom that has a code, else the one at the top. */
function causeOf(error: Fault): Fault {
  if (error.code !== undefined || !(error.cause instanceof Error)) return error;
  const below = causeOf(error.cause);
  return below.code === undefined ? error : below;
}

/** All that is wrong with the settings, or why they cannot be read. */
export const settingFaults = (error: unknown): readonly string[] =>
  error instanceof ConfigError ? error.problems : [error instanceof Error ? error.message : String(error)];
