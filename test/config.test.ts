import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ConfigError, configVariables, loadConfig } from '../src/config.ts';

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
        ALLOW_REGISTRATION: 'maybe',
        LOG_LEVEL: 'loud',
        TRUSTED_PROXIES: '10.0.0.0/8, 300.1.1.1',
        CORS_ORIGINS: 'https://app.example.com/path',
        GRAPHQL_MAX_DEPTH: '1.5',
      }),
    ).toEqual([
      "PORT must be an integer from 0 to 65535, not 'abc'.",
      "PUBLIC_URL must be a URL that starts with http:// or https://, not 'example.com'.",
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
