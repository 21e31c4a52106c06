import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { Outbound, type OutboundOptions } from '../../src/platform/outbound/outbound.ts';
import { quietLogger } from './quiet-logger.ts';
import { startRawTarget, startTarget, type TargetServer } from './target-server.ts';

/** A target that is closed at the end of the test. */
export async function target(...given: Parameters<typeof startTarget>): Promise<TargetServer> {
  const server = await startTarget(...given);
  onTestFinished(() => server.close());
  return server;
}

/** The same for a target that writes its answers byte by byte. */
export async function rawTarget(...given: Parameters<typeof startRawTarget>): Promise<TargetServer> {
  const server = await startRawTarget(...given);
  onTestFinished(() => server.close());
  return server;
}

/**
 * A client for outbound calls that is closed at the end of the test.
 * @param allow addresses inside that it may call, as `OUTBOUND_ALLOW`
 */
export function client(allow: string, options: Partial<OutboundOptions> = {}): Outbound {
  const outbound = new Outbound({ config: loadConfig({ OUTBOUND_ALLOW: allow }), logger: quietLogger, ...options });
  onTestFinished(() => outbound.close());
  return outbound;
}
