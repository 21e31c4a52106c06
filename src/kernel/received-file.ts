/** A file whose bytes are all stored. */
export interface ReceivedFile {
  id: string;
  fileName: string;
  mimeType: string;
  sizeBytes: number;
  /** In hexadecimal. */
  sha256: string;
}
