import { z } from 'zod';
import { isDocumentId } from './registered-documents.ts';

const text = z.string().min(1);
/** `{id: text}`, as codegen and Relay write it. */
const plain = z.record(z.string(), text);
/** As Apollo writes it. */
const apollo = z.object({
  format: z.literal('apollo-persisted-query-manifest'),
  version: z.literal(1),
  operations: z.array(z.object({ id: z.string(), body: text })),
});

/**
 * The documents of a manifest that a build tool wrote, by their ids.
 * @throws Error for a file in another form, or an id that is unusable or names two texts
 */
export function documentsOf(manifest: string): Map<string, string> {
  const entries = entriesOf(parsed(manifest));
  const documents = new Map<string, string>();
  for (const [id, body] of entries) {
    if (!isDocumentId(id))
      throw new Error(`The id ${JSON.stringify(id)} must be 1 to 256 printable ASCII characters without spaces.`);
    if ((documents.get(id) ?? body) !== body) throw new Error(`The id '${id}' names two documents.`);
    documents.set(id, body);
  }
  return documents;
}

function parsed(manifest: string): unknown {
  try {
    return JSON.parse(manifest);
  } catch (error) {
    throw new Error('The manifest is not JSON.', { cause: error });
  }
}

function entriesOf(manifest: unknown): [id: string, body: string][] {
  const ofApollo = apollo.safeParse(manifest);
  if (ofApollo.success) return ofApollo.data.operations.map(({ id, body }) => [id, body]);
  const ofOthers = plain.safeParse(manifest);
  if (ofOthers.success) return Object.entries(ofOthers.data);
  throw new Error(
    'The manifest must be {"id": "document", …}, or that of Apollo: {"format": "apollo-persisted-query-manifest", ' +
      '"version": 1, "operations": [{"id": …, "body": …}, …]}.',
  );
}
