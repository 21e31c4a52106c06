import type { GraphQLSchema } from 'graphql';
import { compileOperations } from './compile.ts';
import { buildOpenApi, type OpenApiDocument, type OpenApiOptions } from './openapi.ts';
import type { CompiledOperation } from './operation.ts';
import { readReference } from './reference.ts';

/** The operation documents of a folder, compiled. Servers of one process can share it: it keeps no state of theirs. */
export class Facade {
  readonly operations: readonly CompiledOperation[];
  readonly #dir: string;
  readonly #documents = new Map<string, OpenApiDocument>();

  /**
   * @param dir folder of `*.graphql` documents, read recursively. Those below `additions/` are marked `x-addition` in
   * OpenAPI
   * @param wereValid whether documents with this digest are known to be valid. Without it, they are validated
   * @throws CompileError when a document has a mistake
   */
  constructor(schema: GraphQLSchema, dir: string, wereValid?: (digest: string) => boolean) {
    this.operations = compileOperations(schema, dir, wereValid);
    this.#dir = dir;
  }

  /** The OpenAPI document, made once for the same options. */
  openApi({ info, publicUrl }: OpenApiOptions): OpenApiDocument {
    const key = JSON.stringify([info, publicUrl]);
    const document =
      this.#documents.get(key) ??
      buildOpenApi(this.operations, readReference(this.#dir, this.operations), { info, publicUrl });
    this.#documents.set(key, document);
    return document;
  }
}
