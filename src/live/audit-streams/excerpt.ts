const KEPT = 1_024;

/** What the log keeps of what was sent. */
export const excerptOfLine = (line: string): string => line.trimEnd().slice(0, KEPT).toWellFormed();
