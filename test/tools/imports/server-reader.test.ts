import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { Outbound } from '../../../src/platform/outbound/outbound.ts';
import { ServerReader } from '../../../src/tools/imports/server-reader.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { startTarget, type TargetServer } from '../../support/target-server.ts';

const HOST = 'mcp.evil.test';
let server: TargetServer;
/** A service inside, on the machine that the name of the server has come to mean. */
let inside: TargetServer;

beforeAll(async () => {
  inside = await startTarget((_request, response) => response.writeHead(404).end());
  server = await startTarget((request, response) => {
    const at = `http://${HOST}:${server.port}`;
    if (request.url !== '/.well-known/oauth-protected-resource/mcp') return response.writeHead(401).end();
    const document = { resource: `${at}/mcp`, authorization_servers: [`http://${HOST}:${inside.port}/p`] };
    return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
  });
});
afterAll(() => Promise.all([server.close(), inside.close()]));

test.each([
  ['a range', '127.0.0.0/8', 0],
  ['its name', HOST, 3],
])('a server that is open by %s names other ports of its host: %s', async (_what, allow, asked) => {
  inside.requests.length = 0;
  const outbound = new Outbound({
    config: loadConfig({ OUTBOUND_ALLOW: allow }),
    logger: quietLogger,
    names: { addresses: async () => ['127.0.0.1'] },
  });
  const request = { url: `http://${HOST}:${server.port}/mcp`, owner: 'org' };
  await expect(new ServerReader(outbound).read(request, null, { mayBeUnlisted: true })).rejects.toThrow(/metadata/);
  expect(inside.requests).toHaveLength(asked);
  await outbound.close();
});
