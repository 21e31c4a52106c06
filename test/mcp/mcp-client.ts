import { type CallToolResult, Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { TestApp } from '../support/app.ts';

/** Revisions of the protocol: that of 2026, and those before it. */
export type Era = 'modern' | 'legacy';

export interface McpClientOptions {
  path?: string;
  era?: Era;
  /** What the user answers to questions; without it, the client cannot ask. */
  user?: (question: string) => boolean;
  /** Is called when the client is told that the list of tools has changed. */
  onListChanged?: () => void;
}

/** A client of the SDK that is connected to the service. */
export interface McpClient {
  client: Client;
  /** Calls a tool. @returns its text, and whether it is an error */
  call: (name: string, args?: Record<string, unknown>, meta?: Record<string, unknown>) => Promise<Called>;
}

export interface Called {
  text: string;
  isError: boolean;
  /** What is between the marks of data, or the JSON of an error. */
  json: Record<string, unknown>;
}

export async function connect(app: TestApp, token: string, options: McpClientOptions = {}): Promise<McpClient> {
  const { path = '/mcp', era = 'modern', user, onListChanged } = options;
  const client = new Client(
    { name: 'a-test', version: '1.0.0' },
    {
      ...(era === 'modern' && { versionNegotiation: { mode: { pin: '2026-07-28' } } }),
      capabilities: user ? { elicitation: { form: {} } } : {},
      ...(onListChanged && {
        listChanged: { tools: { onChanged: onListChanged, autoRefresh: false, debounceMs: 0 } },
      }),
    },
  );
  if (user)
    client.setRequestHandler('elicitation/create', ({ params }) =>
      user(params.message) ? { action: 'accept', content: { confirm: true } } : { action: 'decline' },
    );
  const transport = new StreamableHTTPClientTransport(new URL(`${app.url}${path}`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  return {
    client,
    async call(name, args = {}, meta) {
      const result = (await client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) })) as CallToolResult;
      return calledOf(result);
    },
  };
}

export function calledOf({ content, isError = false }: CallToolResult): Called {
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
  const data = /^<(data-[\da-f]{16})>\n(.*)\n<\/\1>$/ms.exec(text)?.[2] ?? text;
  let json: Record<string, unknown> = {};
  if (data.startsWith('{')) {
    try {
      json = JSON.parse(data) as Record<string, unknown>;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error; // it was cut
    }
  }
  return { text, isError, json };
}
