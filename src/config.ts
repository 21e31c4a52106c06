import path from 'node:path';
import type { z } from 'zod';
import { accountSettings } from './platform/settings/account-settings.ts';
import { takeEnvFile } from './platform/settings/env-file.ts';
import { graphqlSettings } from './platform/settings/graphql-settings.ts';
import { limitSettings } from './platform/settings/limit-settings.ts';
import { misspeltVariables } from './platform/settings/misspelt.ts';
import { outboundSettings } from './platform/settings/outbound-settings.ts';
import { serverSettings } from './platform/settings/server-settings.ts';
import { withSettingFiles } from './platform/settings/setting-files.ts';
import { storageSettings } from './platform/settings/storage-settings.ts';
import { tracingSettings } from './platform/settings/tracing-settings.ts';
import type { Setting } from './setting.ts';

/** Every variable that the service reads, by its name in {@link Config}, in the order of the documentation. */
const settings = {
  ...serverSettings,
  ...storageSettings,
  ...outboundSettings,
  ...accountSettings,
  ...limitSettings,
  ...graphqlSettings,
  ...tracingSettings,
} as const;

type Settings = typeof settings;
type Output<S> = S extends { schema: z.ZodType<infer T, string> } ? T : never;
type Read = {
  readonly [K in keyof Settings]: Settings[K] extends { default: string }
    ? Output<Settings[K]>
    : Output<Settings[K]> | undefined;
};

/** Settings whose default depends on other settings. They always have a value. */
type Derived = {
  readonly [K in 'passwordBlocklist' | 'graphiql' | 'keysDir' | 'logFormat']: NonNullable<Read[K]>;
} & {
  readonly isProduction: boolean;
  /** One sentence for each variable that begins like a setting and is probably what a hosting platform adds. */
  readonly ignoredVariables: readonly string[];
  /** The store for files; `null` when they are kept in `DATA_DIR/files`. */
  readonly s3: S3Config | null;
};

/** An S3-compatible store. */
export interface S3Config {
  readonly bucket: string;
  /** `undefined`: Amazon's own. */
  readonly endpoint: string | undefined;
  readonly publicEndpoint: string | undefined;
  readonly region: string;
  /** Both or none. */
  readonly accessKeyId: string | undefined;
  readonly secretAccessKey: string | undefined;
  readonly forcePathStyle: boolean;
}

/**
 * The settings of the operator. Folders are absolute. `publicUrl` is `undefined` when it follows from the listening
 * port, `databaseUrl` when the embedded database is used, `smtpUrl` when mails are written to files.
 */
export type Config = Omit<Read, keyof Derived> & Derived;

/** The environment is invalid; `problems` has one sentence per wrong variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** Row of the table of docs/operate/configuration.md. */
export interface ConfigVariable {
  name: string;
  /** Markdown. */
  default: string;
  description: string;
}

/** All variables in the order of the documentation. */
export const configVariables: readonly ConfigVariable[] = Object.values<Setting<unknown>>(settings).map((s) => ({
  name: s.variable,
  default: s.defaultText ?? `\`${s.default ?? ''}\``,
  description: s.description,
}));

function sentence({ variable, mustBe, secret }: Setting<unknown>, value: string): string {
  return secret ? `${variable} must be ${mustBe}.` : `${variable} must be ${mustBe}, not '${value}'.`;
}

function readAll(env: NodeJS.ProcessEnv): { values: Read; problems: string[] } {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [key, s] of Object.entries<Setting<unknown>>(settings)) {
    const value = env[s.variable] || s.default;
    if (value === undefined) continue;
    const read = s.schema.safeParse(value);
    if (read.success) values[key] = read.data;
    else problems.push(sentence(s, value));
  }
  return { values: values as Read, problems };
}

/**
 * The arguments of the command line. The file that `--env-file` names is taken into the environment.
 * @throws Error when it cannot be read
 */
export const commandLine = (): string[] => takeEnvFile(process.argv.slice(2), process.env);

const variables: readonly string[] = configVariables.map(({ name }) => name);

/** How the log is written, told also when other settings are wrong. */
export const logFormatOf = (env: NodeJS.ProcessEnv = process.env): Config['logFormat'] => {
  const { values } = readAll(withSettingFiles(env, variables).env);
  return values.logFormat ?? (values.environment === 'production' ? 'json' : 'text');
};

/**
 * Reads and checks all variables; an empty one counts as unset, and the file of `NAME_FILE` may hold the value of
 * `NAME`. A variable that looks like a misspelt one is refused, because it would have no effect.
 * @throws ConfigError naming every variable that is wrong
 */
export function loadConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const files = withSettingFiles(env, variables);
  const { values, problems } = readAll(files.env);
  const misspelt = misspeltVariables(env, variables, values.foreignVariables ?? []);
  problems.push(...files.problems, ...misspelt.problems);
  if (values.refreshTokenAbsoluteDays < values.refreshTokenIdleDays) {
    problems.push(
      `REFRESH_TOKEN_ABSOLUTE_DAYS must not be less than REFRESH_TOKEN_IDLE_DAYS (${values.refreshTokenIdleDays}).`,
    );
  }
  if (values.databaseDirectUrl && !values.databaseUrl)
    problems.push('DATABASE_URL must be set when DATABASE_DIRECT_URL is set.');
  if (values.databaseReadUrls.length > 0 && !values.databaseUrl)
    problems.push('DATABASE_URL must be set when DATABASE_READ_URLS is set.');
  problems.push(...storeProblems(values));
  if (problems.length > 0) throw new ConfigError(problems);
  const isProduction = values.environment === 'production';
  const dataDir = path.resolve(values.dataDir);
  return {
    ...values,
    isProduction,
    dataDir,
    keysDir: values.keysDir ? path.resolve(values.keysDir) : path.join(dataDir, 'keys'),
    passwordBlocklist: values.passwordBlocklist ?? isProduction,
    graphiql: values.graphiql ?? !isProduction,
    logFormat: values.logFormat ?? (isProduction ? 'json' : 'text'),
    ignoredVariables: misspelt.warnings,
    s3: storeOf(values),
  };
}

const S3_SETTINGS = ['s3Endpoint', 's3PublicEndpoint', 's3AccessKeyId', 's3SecretAccessKey'] as const;

function storeProblems(values: Read): string[] {
  const given = S3_SETTINGS.find((key) => values[key] !== undefined);
  const problems: string[] = [];
  if (given && !values.s3Bucket) problems.push(`S3_BUCKET must be set when ${settings[given].variable} is set.`);
  if ((values.s3AccessKeyId === undefined) !== (values.s3SecretAccessKey === undefined))
    problems.push('S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set together.');
  return problems;
}

function storeOf(values: Read): S3Config | null {
  if (!values.s3Bucket) return null;
  return {
    bucket: values.s3Bucket,
    endpoint: values.s3Endpoint,
    publicEndpoint: values.s3PublicEndpoint,
    region: values.s3Region,
    accessKeyId: values.s3AccessKeyId,
    secretAccessKey: values.s3SecretAccessKey,
    forcePathStyle: values.s3ForcePathStyle ?? values.s3Endpoint !== undefined,
  };
}
