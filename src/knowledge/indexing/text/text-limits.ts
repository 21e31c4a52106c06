/** What one file may cost (performance-and-security C8). */
export const limits = {
  /** Time of processors that the parser of one file may take. */
  timeMs: 10_000,
  /** The largest PDF or DOCX that is read. */
  sourceBytes: 32 * 1024 * 1024,
  /** So much of a text file is read: more would not fit into the output. */
  plainSourceBytes: 8 * 1024 * 1024,
  /** Of a PDF so many pages are read. */
  pages: 500,
  /** The text that is kept, in UTF-8. The rest of a longer one is not found by a query. */
  outputBytes: 2 * 1024 * 1024,
  /** A file that unpacks to more than so many times its size is refused. */
  ratio: 100,
  /** The XML of a DOCX, unpacked. */
  xmlBytes: 24 * 1024 * 1024,
  /** Entries of a DOCX. */
  entries: 10_000,
  /** The heap of the process that reads. What it may grow by is less. */
  heapMiB: 512,
  /** While a file is read, that process may grow by so much, and so many times the file. */
  growthBytes: 160 * 1024 * 1024,
  growthRatio: 8,
} as const;
