import type { ServerResponse } from 'node:http';
import { startTarget, type TargetServer } from './target-server.ts';

const COMPONENTS = 512;

/** Words that mean the same. */
const synonyms: Readonly<Record<string, string>> = {
  automobile: 'car',
  vehicle: 'car',
  physician: 'doctor',
  medic: 'doctor',
  loaf: 'bread',
  baguette: 'bread',
};

/** An OpenAI-compatible server of embeddings: words with their synonyms, hashed. */
export interface EmbeddingServer extends TargetServer {
  baseUrl: string;
  /** Answers instead of the vectors, if set. */
  refuse: ((response: ServerResponse) => void) | null;
  /** What an answer waits for, if set. */
  held: Promise<void> | null;
  /** The texts that it was sent, in order. */
  texts(): string[];
}

interface Asked {
  model: string;
  input: string[];
}

export async function startEmbeddings(): Promise<EmbeddingServer> {
  const target = await startTarget(async (_request, response, body) => {
    await server.held;
    if (server.refuse) return server.refuse(response);
    const { model, input } = JSON.parse(body) as Asked;
    const data = input.map((text, index) => ({ object: 'embedding', index, embedding: embeddingOf(text, model) }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ object: 'list', model, data, usage: { prompt_tokens: 7, total_tokens: 7 } }));
  });
  const server: EmbeddingServer = Object.assign(target, {
    baseUrl: `http://127.0.0.1:${target.port}/v1`,
    refuse: null,
    held: null,
    texts: () => target.requests.flatMap(({ body }) => (JSON.parse(body) as Asked).input),
  });
  return server;
}

/** A vector of what a text means, by words and their synonyms; every model has its own. */
export function embeddingOf(text: string, model: string): number[] {
  const vector = Array.from({ length: COMPONENTS }, () => 0);
  vector[0] = 0.05;
  for (const [word] of text.toLowerCase().matchAll(/\p{L}+/gu)) {
    const meant = synonyms[word] ?? word;
    for (let n = 0; n < 8; n += 1) {
      const hash = hashOf(`${model} ${n} ${meant}`);
      vector[1 + (hash % (COMPONENTS - 1))]! += hash & 0x10000 ? 1 : -1;
    }
  }
  return vector;
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash ^ (hash >>> 15);
}
