import { type Logger as PinoLogger, type LoggerOptions, pino } from 'pino';
import type { Config } from '../config.ts';

/** The process's log: one JSON object per line on standard output. */
export type Logger = PinoLogger;

const SECRET_KEYS = [
  'authorization',
  'cookie',
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
  'code',
];

// `code` of an error object is its class ('ECONNREFUSED'), not a secret: it is redacted only where requests are logged.
const SECRET_PATHS = SECRET_KEYS.flatMap((key) => [
  ...(key === 'code' ? [] : [key, `*.${key}`]),
  `*.headers.${key}`,
  `*.body.${key}`,
  `*.query.${key}`,
]);

/** Options for pino, also usable as Fastify's logger options. Records of a request carry its `trace_id`. */
export function loggerOptions({ logLevel }: Pick<Config, 'logLevel'>): LoggerOptions {
  return {
    level: logLevel,
    base: undefined,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: ['set-cookie', '*.set-cookie', ...SECRET_PATHS].map(quoteDashes), censor: '[redacted]' },
  };
}

function quoteDashes(keyPath: string): string {
  return keyPath.replace(/\.?([a-z]+-[a-z-]+)$/, '["$1"]');
}

/** The logger of the process. */
export function createLogger(config: Pick<Config, 'logLevel'>): Logger {
  return pino(loggerOptions(config));
}

/** A logger for the records of one request or one unit of background work. */
export function traced(logger: Logger, traceId: string): Logger {
  return logger.child({ trace_id: traceId });
}
