import type { IncomingMessage } from 'node:http';

const LINGER_MS = 5_000;

/**
 * Reads on after a refusal, for a while: a client that is still sending would not read the answer, and see its
 * connection reset instead.
 */
export function finishReading(raw: IncomingMessage): void {
  const { socket } = raw;
  // an injected request has no connection to end
  if (raw.complete || raw.destroyed || !('remoteFamily' in socket)) return;
  raw.unpipe();
  raw.resume();
  const cut = setTimeout(() => raw.complete || socket.destroySoon(), LINGER_MS).unref();
  raw.once('close', () => clearTimeout(cut));
}
