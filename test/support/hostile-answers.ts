import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { TestApp } from './app.ts';
import { shapeFault } from './error-shapes.ts';
import type { HostileRequest } from './hostile.ts';
import { slownessNow } from './slowness.ts';

const TIMEOUT_MS = 10_000;

/** The answer, or a rejection when there is none in time. */
export async function answered(app: TestApp, request: InjectOptions): Promise<LightMyRequestResponse> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), TIMEOUT_MS * slownessNow());
  });
  try {
    return await Promise.race([app.server.inject(request), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What is wrong with how a request was answered; `null` when it was a success or a refusal in good form. */
export async function faultOf(app: TestApp, request: InjectOptions): Promise<string | null> {
  const answer = await answered(app, request);
  if (answer.statusCode >= 500) return `${answer.statusCode} ${answer.body.slice(0, 300)}`;
  if (answer.statusCode < 400 || request.method === 'HEAD') return null;
  const fault = shapeFault(answer);
  return fault && `${answer.statusCode}: ${fault}`;
}

/** What is wrong with how requests were answered, each with what was odd about the request. */
export async function faultsOf(app: TestApp, requests: Iterable<HostileRequest>): Promise<string[]> {
  const faults: string[] = [];
  for (const { what, request } of requests) {
    const fault = await faultOf(app, request);
    if (fault) faults.push(`${what} -> ${fault}`);
  }
  return faults;
}

const properties = () => Object.getOwnPropertyNames(Object.prototype).join();
const clean = properties();

/** What is wrong with the prototype of all objects: `null` when no request has added anything to it. */
export const pollution = (): string | null => (properties() === clean ? null : properties());
