import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConfigError, configVariables, loadConfig, logFormatOf } from '../src/config.ts';
import { takeEnvFile } from '../src/platform/settings/env-file.ts';
import { OWN_PREFIXES } from '../src/platform/settings/misspelt.ts';

function problemsOf(env: NodeJS.ProcessEnv): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    return (error as ConfigError).problems;
  }
  return [];
}

describe('loadConfig', () => {
  it('needs nothing: every variable has a default or may be absent', () => {
    const config = loadConfig({});
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 4000,
      dataDir: path.resolve('.data'),
      rateLimitRps: 500,
      bodyLimitBytes: 2_097_152,
    });
    expect(config.publicUrl).toBeUndefined();
    expect(config.keysDir).toBe(path.resolve('.data/keys'));
  });

  it('says what is wrong with every bad variable at once', () => {
    expect(
      problemsOf({
        PORT: 'abc',
        PUBLIC_URL: 'example.com',
        SUPPORT_CONTACT: 'the third floor',
        ALLOW_REGISTRATION: 'maybe',
        LOG_LEVEL: 'loud',
        TRUSTED_PROXIES: '10.0.0.0/8, 300.1.1.1',
        CORS_ORIGINS: 'https://app.example.com/path',
        GRAPHQL_MAX_DEPTH: '1.5',
      }),
    ).toEqual([
      "PORT must be an integer from 0 to 65535, not 'abc'.",
      "PUBLIC_URL must be a URL that starts with http:// or https://, not 'example.com'.",
      "SUPPORT_CONTACT must be a mail address, or a URL that starts with http:// or https://, not 'the third floor'.",
      "TRUSTED_PROXIES must be addresses or CIDR ranges between commas, not '10.0.0.0/8, 300.1.1.1'.",
      'CORS_ORIGINS must be origins like https://app.example.com between commas, or *, ' +
        "not 'https://app.example.com/path'.",
      "LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not 'loud'.",
      "ALLOW_REGISTRATION must be one of true, false, 1, 0, yes, no, on, off, not 'maybe'.",
      "GRAPHQL_MAX_DEPTH must be an integer from 1 to 1000, not '1.5'.",
    ]);
  });

  it('keeps files in a folder, or in the bucket that is named', () => {
    expect(loadConfig({})).toMatchObject({ s3: null, maxUploadBytes: 52_428_800 });
    expect(loadConfig({ S3_BUCKET: 'files', S3_ENDPOINT: 'http://minio:9000/' }).s3).toEqual({
      bucket: 'files',
      endpoint: 'http://minio:9000',
      publicEndpoint: undefined,
      region: 'us-east-1',
      accessKeyId: undefined,
      secretAccessKey: undefined,
      forcePathStyle: true,
    });
    expect(loadConfig({ S3_BUCKET: 'files' }).s3).toMatchObject({ endpoint: undefined, forcePathStyle: false });
  });

  it('refuses half of a store', () => {
    expect(problemsOf({ S3_ENDPOINT: 'http://minio:9000', S3_SECRET_ACCESS_KEY: 'hush' })).toEqual([
      'S3_BUCKET must be set when S3_ENDPOINT is set.',
      'S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set together.',
    ]);
  });

  it.each(['65536', '-1', '0x10', '4e3', ' 80', '99999999999999999999'])('refuses %j as a port', (PORT) => {
    expect(problemsOf({ PORT })).toEqual([`PORT must be an integer from 0 to 65535, not '${PORT}'.`]);
  });

  it.each([
    'http://idp.internal',
    '10.0.0.0/33',
    '127.1',
    'idp.internal:0',
    'idp.internal.',
    '[idp.internal]',
    '*',
    '169.254.169.254',
    '169.254.0.0/16',
    '169.254.169.254:80',
    'metadata.google.internal',
    '[fd00:ec2::254]:80',
    '0.0.0.0',
    'ff02::/16',
  ])('does not open %s to outbound calls', (target) => {
    expect(problemsOf({ OUTBOUND_ALLOW: `10.0.0.0/8, ${target}` })).toEqual([
      'OUTBOUND_ALLOW must be hosts, addresses or CIDR ranges between commas, each with a port if wanted, and no ' +
        `metadata, link-local, multicast or unspecified address, not '10.0.0.0/8, ${target}'.`,
    ]);
  });

  it('reads targets and DNS servers of outbound calls', () => {
    const { outboundAllow, outboundDns } = loadConfig({
      OUTBOUND_ALLOW: 'IdP.internal, idp.internal:8080,10.0.0.0/8,127.0.0.1:9000,::1,[::1]:80,fd00::/8',
      OUTBOUND_DNS: '192.0.2.53, 192.0.2.53:5353, ::1, [::1]:53',
    });
    expect(outboundAllow).toEqual([
      { kind: 'name', value: 'idp.internal', port: null },
      { kind: 'name', value: 'idp.internal', port: 8080 },
      { kind: 'range', value: '10.0.0.0/8', port: null },
      { kind: 'range', value: '127.0.0.1', port: 9000 },
      { kind: 'range', value: '::1', port: null },
      { kind: 'range', value: '::1', port: 80 },
      { kind: 'range', value: 'fd00::/8', port: null },
    ]);
    expect(outboundDns).toEqual(['192.0.2.53', '192.0.2.53:5353', '::1', '[::1]:53']);
    expect(problemsOf({ OUTBOUND_DNS: 'dns.test' })).toEqual([
      "OUTBOUND_DNS must be addresses of DNS servers between commas, each with a port if wanted, not 'dns.test'.",
    ]);
  });

  it('reads a number of workers, or one for each CPU', () => {
    expect([loadConfig({}).workers, loadConfig({ WORKERS: '4' }).workers]).toEqual([1, 4]);
    expect(loadConfig({ WORKERS: 'auto' }).workers).toBe(Math.min(availableParallelism(), 64));
    for (const WORKERS of ['0', '65', '1.5', 'all'])
      expect(problemsOf({ WORKERS })).toEqual([`WORKERS must be an integer from 1 to 64, or auto, not '${WORKERS}'.`]);
  });

  it('never repeats a secret', () => {
    expect(
      problemsOf({ APP_SECRET: 'hunter2', DATABASE_URL: 'mysql://u:hunter2@h/d', SMTP_URL: 'http://u:hunter2@h' }),
    ).toEqual([
      'DATABASE_URL must be a URL that starts with postgresql:// or postgres://.',
      'SMTP_URL must be a URL that starts with smtp:// or smtps://.',
      'APP_SECRET must be at least 32 characters long.',
    ]);
  });

  it('reports a contradiction of two variables', () => {
    expect(problemsOf({ REFRESH_TOKEN_IDLE_DAYS: '31' })).toEqual([
      'REFRESH_TOKEN_ABSOLUTE_DAYS must not be less than REFRESH_TOKEN_IDLE_DAYS (31).',
    ]);
  });

  it('treats an empty variable as unset', () => {
    expect(loadConfig({ PORT: '', DATABASE_URL: '', SMTP_URL: '' })).toEqual(loadConfig({}));
  });

  it.each([
    ['true', true],
    ['1', true],
    ['YES', true],
    ['On', true],
    ['false', false],
    ['0', false],
    ['no', false],
    ['OFF', false],
  ])('reads %j as %j', (ALLOW_REGISTRATION, expected) => {
    expect(loadConfig({ ALLOW_REGISTRATION }).allowRegistration).toBe(expected);
  });

  it('is safer in production', () => {
    expect(loadConfig({ NODE_ENV: 'production' })).toMatchObject({
      isProduction: true,
      passwordBlocklist: true,
      graphiql: false,
    });
    expect(loadConfig({})).toMatchObject({ isProduction: false, passwordBlocklist: false, graphiql: true });
  });

  it('reads lists between commas, and a proxy with or without a prefix', () => {
    const config = loadConfig({
      TRUSTED_PROXIES: '10.0.0.0/8, ::1 ,fd00::/8',
      CORS_ORIGINS: 'https://a.example,http://localhost:5173',
    });
    expect(config.trustedProxies).toEqual(['10.0.0.0/8', '::1', 'fd00::/8']);
    expect(config.corsOrigins).toEqual(['https://a.example', 'http://localhost:5173']);
  });

  it('documents each variable once', () => {
    const names = configVariables.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, description } of configVariables)
      expect(`${name}: ${description}`).toMatch(/^[A-Z0-9_]+: .+\.$|NODE_ENV/);
  });
});

describe('a variable that looks like a setting', () => {
  const meant = (name: string, value = '5'): string | undefined =>
    / Did you mean (\w+)\?/.exec(problemsOf({ [name]: value })[0] ?? '')?.[1];

  it.each([
    ['RATE_LIMT_RPS', 'RATE_LIMIT_RPS'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['DATABASE_HOST', 'DATABASE_URL'],
    ['DATABASE_PASSWORD_FILE', 'DATABASE_URL_FILE'],
    ['DATABSE_URL_FILE', 'DATABASE_URL_FILE'],
    ['DATABASE_URL_FIEL', 'DATABASE_URL_FILE'],
    ['SMTP_HOST', 'SMTP_URL'],
    ['CORS_ORIGIN', 'CORS_ORIGINS'],
    ['S3_BUKET', 'S3_BUCKET'],
    ['S3_SECRET_KEY', 'S3_SECRET_ACCESS_KEY'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['PROT', 'PORT'],
    ['ROOT_KEY', 'ROOT_KEYS'],
    ['KEYS_DRI', 'KEYS_DIR'],
    ['public_url', 'PUBLIC_URL'],
  ])('%s stops the start, because %s was meant', (name, setting) => {
    expect(meant(name)).toBe(setting);
  });

  it('is named in one sentence with what to do, and without its value', () => {
    expect(problemsOf({ DATABSE_URL: 'postgres://u:hunter2@h/d' })).toEqual([
      'DATABSE_URL is not a setting. Did you mean DATABASE_URL? ' +
        'If it belongs to another program, name it in FOREIGN_VARIABLES.',
    ]);
    expect(problemsOf({ DATABASE_HOST: 'h', SMTP_HOST: 'h', FOREIGN_VARIABLES: 'DATABASE_HOST, SMTP_HOST' })).toEqual(
      [],
    );
    expect(problemsOf({ DATABSE_URL: '' })).toEqual([]);
  });

  it.each([
    ['DATABASE_HOST DATABASE_USER DATABASE_PASSWORD DATABASE_NAME', { DATABASE_URL: 'postgres://h/d' }],
    ['SMTP_HOST SMTP_PASSWORD', { SMTP_URL: 'smtp://h' }],
    ['S3_HOST', { S3_BUCKET: 'b' }],
    ['CORS_ALLOWED_ORIGINS', { CORS_ORIGINS: 'https://a.test' }],
  ])('%s: beside the setting of their group, a start warns of what a platform adds', (names, given) => {
    const added = Object.fromEntries(names.split(' ').map((name) => [name, 'hunter2']));
    const [setting] = Object.keys(given);
    const env = { ...added, ...given };
    expect(loadConfig(env).ignoredVariables).toEqual(
      names
        .split(' ')
        .map(
          (name) =>
            `${name} is not a setting and has no effect beside ${setting}. ` +
            'If it belongs to another program, name it in FOREIGN_VARIABLES.',
        ),
    );
    expect(problemsOf(added)).toHaveLength(names.split(' ').length);
  });

  it('is refused beside the setting of its group if it is nearly another one', () => {
    expect(problemsOf({ DATABASE_URL: 'postgres://h/d', DATABASE_URI: 'x', DATABASE_POOL_SIZ: '9' })).toHaveLength(2);
  });

  it.each([
    'HOSTNAME HOME PATH PORTS HOSTS POST SORT HOST_IP PORT_RANGE NODE_OPTIONS NODE_PATH NODE_VERSION',
    'PGHOST PGPORT PGDATA PGUSER PGPASSWORD POSTGRES_URL AMQP_URL MAIL MAILER LOGNAME LOG_FILE LOG_DIR LANG USER',
    'API_URL API_KEY API_SECRET AWS_SECRET AWS_REGION APP_NAME APP_ENV APP_KEY APP_HOME APP_VERSION APP_DIR BASE_URL',
    'XDG_DATA_DIRS XDG_DATA_HOME HTTP_PROXY HTTPS_PROXY NO_PROXY TMPDIR EDITOR SHELL SHLVL MAX_PATH CI DEBUG',
    'ROOT_DIR ROOT_URL KEY_FILE HOSTS_FILE ENV_FILE PID_FILE LOGIN_URL EVENT_NAME PUBLIC_DIR PUBLIC_KEY ACCESS_TOKEN',
    'host port home npm_config_cache npm_package_version KUBERNETES_SERVICE_HOST KUBERNETES_PORT_443_TCP_ADDR',
    'DATABASE_SERVICE_HOST DATABASE_SERVICE_PORT DATABASE_SERVICE_PORT_POSTGRES DATABASE_PORT_5432_TCP S3_PORT_80_TCP',
  ])('%s: those of others do not stop it', (names) => {
    const env = Object.fromEntries(names.split(' ').map((name) => [name, 'x']));
    expect(problemsOf(env)).toEqual([]);
  });

  it('is none if Kubernetes made it for a service of that name', () => {
    expect(meant('DATABASE_PORT', 'tcp://10.0.0.7:5432')).toBeUndefined();
    expect(meant('DATABASE_PORT', '5432')).toBe('DATABASE_URL');
  });

  it('is looked for by prefixes that settings have', () => {
    for (const prefix of OWN_PREFIXES)
      expect(configVariables.filter(({ name }) => name.startsWith(prefix)).length, prefix).toBeGreaterThan(0);
  });
});

describe('a setting in a file', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'config-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const fileOf = (name: string, text: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, text);
    return file;
  };

  it('is read as it stands there, without the line feed at its end, for every setting', () => {
    const env = { PORT_FILE: fileOf('port', '8080\n'), APP_SECRET_FILE: fileOf('secret', `${' x'.repeat(20)}\r\n`) };
    expect(loadConfig(env)).toMatchObject({ port: 8080, appSecret: ' x'.repeat(20) });
    expect(logFormatOf({ LOG_FORMAT_FILE: fileOf('format', 'json') })).toBe('json');
    for (const { name } of configVariables)
      expect(problemsOf({ [`${name}_FILE`]: path.join(folder, 'none') }), name).toContain(
        `${name}_FILE names '${path.join(folder, 'none')}', but there is no such file.`,
      );
  });

  it('is refused beside the setting itself, and when it cannot be read, is empty or wrong', () => {
    const [good, empty, wrong] = [fileOf('good', '1'), fileOf('empty', '\n'), fileOf('wrong', 'hunter2')];
    expect(
      problemsOf({
        PORT: '1',
        PORT_FILE: good,
        DATABASE_URL_FILE: empty,
        SMTP_URL_FILE: wrong,
        LOG_LEVEL_FILE: wrong,
        APP_SECRET_FILE: folder,
        ROOT_KEYS_FILE: fileOf('large', 'x'.repeat(70_000)),
      }),
    ).toEqual([
      expect.stringMatching(/^LOG_LEVEL must be one of .*, not 'hunter2'\.$/),
      'SMTP_URL must be a URL that starts with smtp:// or smtps://.',
      'PORT and PORT_FILE are both set. Set one of them.',
      `DATABASE_URL_FILE names '${empty}', but it is empty.`,
      `APP_SECRET_FILE names '${folder}', but it is a folder.`,
      `ROOT_KEYS_FILE names '${path.join(folder, 'large')}', but it is larger than 64 KiB.`,
    ]);
  });

  it('may be in the file of --env-file, over which the environment wins', () => {
    const file = fileOf(
      '.env',
      `# ours\nPORT=8080\nMAIL_FROM="A <a@b.test>"\nAPP_SECRET_FILE=${folder}/none\nHOST=::1\n`,
    );
    const env: NodeJS.ProcessEnv = { HOST: '0.0.0.0', APP_SECRET: 'x'.repeat(32) };
    expect(takeEnvFile(['add', '--env-file', file, 'more'], env)).toEqual(['add', 'more']);
    expect(env).toEqual({ HOST: '0.0.0.0', APP_SECRET: 'x'.repeat(32), PORT: '8080', MAIL_FROM: 'A <a@b.test>' });
    const empty: NodeJS.ProcessEnv = { PORT: '', APP_SECRET: '' };
    takeEnvFile(['--env-file', file], empty);
    expect(empty).toMatchObject({ PORT: '8080', APP_SECRET_FILE: `${folder}/none` });
    const same: NodeJS.ProcessEnv = {};
    expect(takeEnvFile([`--env-file=${file}`], same)).toEqual([]);
    expect(same).toMatchObject({ PORT: '8080', HOST: '::1' });
    expect(() => takeEnvFile(['--env-file', path.join(folder, 'none')], {})).toThrow(
      `The file '${path.join(folder, 'none')}' of --env-file cannot be read: ENOENT.`,
    );
    expect(() => takeEnvFile(['--env-file'], {})).toThrow('--env-file needs the path of a file.');
  });
});

describe('NODE_ENV and LOG_FORMAT', () => {
  it('NODE_ENV is one of three words', () => {
    expect(problemsOf({ NODE_ENV: 'prod' })).toEqual([
      "NODE_ENV must be one of development, test, production, not 'prod'.",
    ]);
  });

  it('the log is JSON in production, and text for people elsewhere, unless it is said', () => {
    const formatOf = (env: NodeJS.ProcessEnv) => [loadConfig(env).logFormat, logFormatOf(env)];
    expect(formatOf({})).toEqual(['text', 'text']);
    expect(formatOf({ NODE_ENV: 'production' })).toEqual(['json', 'json']);
    expect(formatOf({ NODE_ENV: 'production', LOG_FORMAT: 'text' })).toEqual(['text', 'text']);
    expect(logFormatOf({ NODE_ENV: 'production', PORT: 'wrong' })).toBe('json');
  });
});
