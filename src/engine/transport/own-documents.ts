import type { DocumentNode, ExecutionResult } from 'graphql';
import type { Context } from '../../graphql/context.ts';
import type { LiveStream } from '../live/live-stream.ts';
import type { Documents } from '../path/documents.ts';
import type { OperationContext } from '../path/operations.ts';
import { envelopedBy, type GraphQLEndpoint } from './endpoint.ts';

type Variables = Record<string, unknown>;

/** Runs the documents of the façade, which are the service's own. Errors in results are as resolvers threw them. */
export class OwnDocuments {
  readonly #documents: Documents;
  readonly #functions: ReturnType<typeof envelopedBy>;

  constructor(endpoint: GraphQLEndpoint, documents: Documents) {
    this.#documents = documents;
    this.#functions = envelopedBy(endpoint, {});
  }

  /** Call it once for each document, before it runs. */
  add(document: DocumentNode): void {
    this.#documents.trust(document);
  }

  /** Runs a query or a mutation. */
  execute(document: DocumentNode, context: Context, variableValues: Variables): Promise<ExecutionResult> {
    const { schema, execute } = this.#functions;
    const contextValue: OperationContext = { context };
    return execute({ schema, document, contextValue, variableValues }) as Promise<ExecutionResult>;
  }

  /** Starts a subscription. @returns the one result of a subscription that did not start */
  async subscribe(
    document: DocumentNode,
    context: Context,
    variableValues: Variables,
  ): Promise<LiveStream | ExecutionResult> {
    const { schema, subscribe } = this.#functions;
    const contextValue: OperationContext = { context };
    const result = await subscribe({ schema, document, contextValue, variableValues });
    return contextValue.live ?? (result as ExecutionResult);
  }
}
