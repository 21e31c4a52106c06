import type { WorkspacePlace } from './checked-place.ts';

/** What texts are embedded for: what an entitlement may be limited to, and what records say. */
export const EMBEDDING_PURPOSE = 'embedding';

/** A vector of the length 1. */
export type Vector = readonly number[];

/** How a model is asked. */
export interface EmbeddingOptions {
  /** Limit of a request, with all targets that are tried. */
  timeoutMs: number;
  /** Trace of the request that it is done for. */
  traceId?: string;
}

/** A model that a workspace may use now. */
export interface OpenEmbedding {
  /** What the model is called at its provider: only vectors of one name compare. */
  modelName: string;
  /** @returns a vector for each text, all with the same number of components @throws EmbeddingUnavailable */
  embed(texts: readonly string[]): Promise<readonly Vector[]>;
}

/** Whoever turns texts into vectors. */
export interface Embedder {
  /** What a model is called at its provider, whoever may use it; `null` if nothing serves it. */
  nameOf(place: WorkspacePlace, modelId: string): Promise<string | null>;
  /** @throws EmbeddingUnavailable */
  open(place: WorkspacePlace, modelId: string, options: EmbeddingOptions): Promise<OpenEmbedding>;
}

/** Why texts are not embedded now. The message is fit for everybody who reads what should be embedded. */
export class EmbeddingUnavailable extends Error {
  override readonly name = 'EmbeddingUnavailable';
  /** Whether it stays so until somebody changes something. */
  readonly isFinal: boolean;
  /** When to try again, if that is known. */
  readonly retryAfterSeconds: number | null;

  constructor(
    message: string,
    { isFinal = false, retryAfterSeconds = null }: { isFinal?: boolean; retryAfterSeconds?: number | null } = {},
  ) {
    super(message);
    this.isFinal = isFinal;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}
