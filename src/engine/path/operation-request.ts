import type { DocumentNode } from 'graphql';

/** An operation of a validated document. */
export interface OperationRequest {
  document: DocumentNode;
  operationName?: string | null | undefined;
  variables?: Record<string, unknown> | null | undefined;
}
