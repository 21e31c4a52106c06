import { type LoggerOptions, type Logger as PinoLogger, pino } from 'pino';
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

function loggerOptions({ logLevel }: Pick<Config, 'logLevel'>): LoggerOptions {
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

/** The logger of the process. Values under the names of secrets are redacted, up to one level deep and in headers, body and query. */
export function createLogger(config: Pick<Config, 'logLevel'>): Logger {
  return pino(loggerOptions(config));
}
