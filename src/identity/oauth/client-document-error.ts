/** Why a document describes no client. Fit for the log: it quotes nothing of the document. */
export class ClientDocumentError extends Error {
  override readonly name = 'ClientDocumentError';
}
