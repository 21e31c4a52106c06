import { describe, expect, it } from 'vitest';
import { forbiddenWaysOut, waysOut } from '../../scripts/ways-out.mjs';

describe('waysOut', () => {
  it.each([
    ["import net from 'node:net';", 'node:net'],
    ["import * as net from 'node:net';", 'node:net'],
    ["import { isIP, connect } from 'node:net';", 'node:net'],
    ["import { isIP as connect, connect as isIP } from 'node:net';", 'node:net'],
    ["import 'node:net';", 'node:net'],
    ["import { request } from 'http';", 'http'],
    ["import { get } from 'node:https';", 'node:https'],
    ["import { connect } from 'node:tls';", 'node:tls'],
    ["import { connect } from 'node:http2';", 'node:http2'],
    ["import { lookup } from 'node:dns/promises';", 'node:dns/promises'],
    ["import { createSocket } from 'node:dgram';", 'node:dgram'],
    ["import { execFile } from 'node:child_process';", 'node:child_process'],
    ["import { Worker } from 'node:worker_threads';", 'node:worker_threads'],
    ["import { createRequire } from 'node:module';", 'node:module'],
    ["export { connect } from 'node:net';", 'node:net'],
    ["export * from 'node:net';", 'node:net'],
    ["export * as net from 'node:net';", 'node:net'],
    ["const { connect } = await import('node:net');", 'node:net'],
    ["import { Agent } from 'undici';", 'undici'],
    ["import axios from 'axios';", 'axios'],
    ["import { S3Client } from '@aws-sdk/client-s3/dist/index.js';", '@aws-sdk/client-s3'],
    ["import { jwtVerify, createRemoteJWKSet } from 'jose';", 'jose'],
    ["await fetch('https://example.com');", 'fetch'],
    ['const call = fetch;', 'fetch'],
    ['run({ fetch });', 'fetch'],
    ["globalThis.fetch('https://example.com');", 'globalThis'],
    ["global['fe' + 'tch']('https://example.com');", 'global'],
    ["new WebSocket('wss://example.com');", 'WebSocket'],
    ["new EventSource('https://example.com');", 'EventSource'],
    ["process.getBuiltinModule('net');", 'getBuiltinModule'],
    ["process.binding('tcp_wrap');", 'binding'],
    ["require('net');", 'require'],
    ["new Function('return fetch')();", 'Function'],
    ["eval('fetch()');", 'eval'],
    ['await import(name);', 'import()'],
  ])('finds %s', (code, way) => {
    expect([...waysOut(code)]).toContain(way);
  });

  it.each([
    "import { isIP, BlockList } from 'node:net';",
    "import { STATUS_CODES } from 'node:http';",
    "import { jwtVerify } from 'jose';",
    "import { readFile } from 'node:fs/promises';",
    "import Fastify from 'fastify';",
    "import { call } from './own.js';",
    'await endpoint.fetch(request);',
    'const outbound = { fetch: call, fetchFor() {} };',
    'class A { fetch() {} }',
    "const text = 'fetch';",
    "await import('graphql');",
  ])('does not find %s', (code) => {
    expect([...waysOut(code)]).toEqual([]);
  });
});

describe('forbiddenWaysOut', () => {
  it('names the module and what it uses, unless it may', () => {
    const code = "import { Client } from 'undici'; fetch('');";
    const found = forbiddenWaysOut([
      { path: 'src/platform/outbound/exchange.js', code },
      { path: 'src/tools/tools/tool.service.js', code },
    ]);
    expect(found.filter((problem) => problem.startsWith('no-other-way-out'))).toEqual([
      'no-other-way-out: src/platform/outbound/exchange.js uses fetch; calls go through src/platform/outbound',
      'no-other-way-out: src/tools/tools/tool.service.js uses undici; calls go through src/platform/outbound',
      'no-other-way-out: src/tools/tools/tool.service.js uses fetch; calls go through src/platform/outbound',
    ]);
  });

  it('reports exceptions that nobody uses', () => {
    const found = forbiddenWaysOut([
      { path: 'src/platform/outbound/exchange.js', code: "import { Client } from 'undici';" },
    ]);
    expect(found).toContain('exception of ways-out.mjs that nobody uses: src/platform/mail/ nodemailer');
    expect(found).not.toContain('exception of ways-out.mjs that nobody uses: src/platform/outbound/ undici');
  });
});
