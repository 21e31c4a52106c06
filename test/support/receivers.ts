import { type Answering, startTarget } from './target-server.ts';
import { waitUntil } from './wait.ts';

/** A receiver of webhooks. */
export interface Receiver {
  url: string;
  got: { headers: Record<string, string>; body: string }[];
  /** Resolves with what it got once there are so many. */
  has(count: number): Promise<Receiver['got']>;
  close(): Promise<void>;
}

type Answer = (
  request: { headers: Record<string, string>; body: string },
  response: Parameters<Answering>[1],
) => unknown;

/** Receives webhooks on 127.0.0.1; answers 200 if nothing else is given. */
export async function receive(answer: Answer = (_request, response) => response.end('thanks')): Promise<Receiver> {
  const target = await startTarget((request, response, body) =>
    answer({ headers: request.headers as Record<string, string>, body }, response),
  );
  const got = target.requests as unknown as Receiver['got'];
  return {
    url: `http://127.0.0.1:${target.port}/hook`,
    got,
    has: (count) => waitUntil(() => got.length >= count && got),
    close: () => target.close(),
  };
}

/** Addresses that no webhook may have, although the operator opens 127.0.0.1. */
export const hostileUrls = [
  'hooks.example.test',
  'ftp://hooks.example.test/',
  'file:///etc/passwd',
  'javascript:alert(1)',
  'https://user:password@hooks.example.test/',
  'https://169.254.169.254/latest/meta-data',
  'http://169.254.169.254/latest/meta-data',
  'https://[fd00:ec2::254]/',
  'https://10.0.0.1/',
  'https://192.168.1.1/',
  'https://[::1]/',
  'https://[::ffff:10.0.0.1]/',
  'https://0x0a000001/',
  'http://93.184.215.14/',
  'https://93.184.215.14:22/',
];
