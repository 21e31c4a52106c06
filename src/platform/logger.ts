import { type DestinationStream, type LoggerOptions, type Logger as PinoLogger, pino, symbols } from 'pino';
import type { Config } from '../config.ts';

/** The process's log: one JSON object per line on standard output. */
export type Logger = PinoLogger;

const SECRETS = [
  'authorization',
  'cookie',
  '["set-cookie"]',
  'password',
  'new_password',
  'newPassword',
  'token',
  'access_token',
  'accessToken',
  'refresh_token',
  'refreshToken',
  'api_key',
  'apiKey',
  'secret',
];

const under = (parent: string, name: string): string => `${parent}${name.startsWith('[') ? '' : '.'}${name}`;

const SECRET_PATHS = [
  ...SECRETS.flatMap((name) => [name, ...['*', '*.headers', '*.body', '*.query'].map((parent) => under(parent, name))]),
  // the `code` of an error is its class ('ECONNREFUSED'); the `code` of a request is a secret
  '*.body.code',
  '*.query.code',
];

/**
 * The logger of the process. Values with the names of secrets are redacted: at the top level, one level down, in
 * headers, body and query.
 */
export function createLogger({ logLevel }: Pick<Config, 'logLevel'>, destination?: DestinationStream): Logger {
  const options: LoggerOptions = {
    level: logLevel,
    base: undefined,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: SECRET_PATHS, censor: '[redacted]' },
  };
  return destination ? pino(options, destination) : pino(options);
}

/**
 * The logger of one request, with its trace id in each line. It equals pino's own `child`, which also searches the
 * bindings of each new child for secrets: 3 % of the CPU of a small request.
 */
export function requestLogger(logger: Logger, traceId: string): Logger {
  const { chindingsSym } = symbols;
  const bindings = `${String(logger[chindingsSym as never])},"trace_id":${JSON.stringify(traceId)}`;
  return Object.assign(Object.create(logger) as Logger, { [chindingsSym]: bindings });
}
