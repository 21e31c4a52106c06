/** The span of somebody else with which a trace goes on (W3C Trace Context). */
export interface TraceParent {
  traceId: string;
  spanId: string;
  /** Whether the trace is recorded there. */
  isSampled: boolean;
}

// a later version may add fields at the end
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?$/;
/** A header is refused beyond this, whatever it says. */
const LONGEST = 256;

/** Reads a header `traceparent`; `null` for none that is valid. */
export function traceParentOf(header: unknown): TraceParent | null {
  if (typeof header !== 'string' || header.length > LONGEST) return null;
  const [, version, traceId = '', spanId = '', flags = '', more] = FORM.exec(header) ?? [];
  if (version === undefined || (version === '00' && more !== undefined)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
