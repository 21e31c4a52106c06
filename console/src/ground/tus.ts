/** A request that got no answer, or one that says to try again: the next one may go on. */
class Interrupted extends Error {
  /** Whether the service has answered. */
  readonly isAnswered: boolean;

  constructor(isAnswered: boolean) {
    super('interrupted');
    this.isAnswered = isAnswered;
  }
}

/** The service takes no more of a file. */
export class UploadRefused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

interface Sending {
  url: string;
  file: Blob;
  signal: AbortSignal;
  /** How many bytes have left. */
  onSent: (bytes: number) => void;
  /** Nothing leaves until the line is back. So many bytes have arrived for sure. */
  onInterrupted: (bytes: number) => void;
}

const VERSION = { 'tus-resumable': '1.0.0' };
const PIECE_BYTES = 4 * 1024 * 1024;
/** A connection on which nothing moves for so long is given up. */
const STALLED_MS = 30_000;
const LONGEST_PAUSE_MS = 15_000;
/** Answers that may be others a moment later: the offset or the writer is another one, too many requests, a restart. */
const PASSING = [408, 409, 425, 429, 502, 503, 504];
/** How often in a row the service may answer so. Without an answer, only the reader gives up. */
const MOST_ANSWERED = 6;

/**
 * Sends what the service does not have yet of a file, in pieces with checksums, by tus 1.0.0. After an interruption it
 * asks how much has arrived, and goes on there.
 * @param isNew whether nothing can have arrived
 * @throws UploadRefused, and the reason of the signal
 */
export async function sendRest(sending: Sending, isNew: boolean): Promise<void> {
  const { file, signal } = sending;
  let at = isNew ? 0 : null;
  let sure = 0;
  for (let failures = 0; ; failures += 1) {
    try {
      at ??= await arrived(sending);
      for (sure = at; sure < file.size; failures = 0) {
        sending.onSent(sure);
        sure = await sendPiece(sending, sure);
      }
      return;
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error;
      if (error.isAnswered && failures >= MOST_ANSWERED) throw new UploadRefused(503, error.message);
    }
    at = null;
    sending.onInterrupted(sure);
    await chance(Math.min(500 * 2 ** failures, LONGEST_PAUSE_MS), signal);
  }
}

/** How many bytes of a file the service has. */
async function arrived({ url, signal }: Sending): Promise<number> {
  const asked = fetch(url, { method: 'HEAD', headers: VERSION, cache: 'no-store', signal });
  const answer = await asked.catch((error: unknown) => {
    throw error instanceof TypeError ? new Interrupted(false) : error;
  });
  return offsetIn({ status: answer.status, offset: answer.headers.get('upload-offset'), text: '' });
}

async function sendPiece({ url, file, signal, onSent }: Sending, from: number): Promise<number> {
  const body = await file.slice(from, from + PIECE_BYTES).arrayBuffer();
  const headers = {
    ...VERSION,
    'content-type': 'application/offset+octet-stream',
    'upload-offset': String(from),
    ...(await digestOf(body)),
  };
  signal.throwIfAborted();
  return offsetIn(await patch(url, { headers, body, signal, onBytes: (bytes) => onSent(from + bytes) }));
}

interface Answer {
  status: number;
  offset: string | null;
  text: string;
}

function offsetIn({ status, offset, text }: Answer): number {
  if (PASSING.includes(status)) throw new Interrupted(true);
  if (status >= 300) throw new UploadRefused(status, messageIn(text));
  if (!offset || !/^\d+$/.test(offset)) throw new UploadRefused(status, '');
  return Number(offset);
}

/** What the service says of a refusal; empty if it was another machine on the way. */
function messageIn(text: string): string {
  try {
    const { error } = JSON.parse(text || '{}') as { error?: { message?: unknown } };
    return typeof error?.message === 'string' ? error.message : '';
  } catch (error) {
    if (error instanceof SyntaxError) return '';
    throw error;
  }
}

interface Piece {
  headers: Readonly<Record<string, string>>;
  body: ArrayBuffer;
  signal: AbortSignal;
  onBytes: (bytes: number) => void;
}

/** `fetch` does not tell how much of a body has left. */
function patch(url: string, { headers, body, signal, onBytes }: Piece): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const ended = new AbortController();
    const breakOff = () => request.abort();
    let stalled: ReturnType<typeof setTimeout> | undefined;
    const moved = () => {
      clearTimeout(stalled);
      stalled = setTimeout(breakOff, STALLED_MS);
    };
    request.open('PATCH', url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded }) => {
      moved();
      onBytes(loaded);
    };
    // all has left: the service may take its time with the whole
    request.upload.onload = () => clearTimeout(stalled);
    request.onload = () =>
      resolve({
        status: request.status,
        offset: request.getResponseHeader('upload-offset'),
        text: request.responseText,
      });
    request.onerror = () => reject(new Interrupted(false));
    request.onabort = () => reject(signal.aborted ? signal.reason : new Interrupted(false));
    request.onloadend = () => {
      clearTimeout(stalled);
      ended.abort();
    };
    signal.addEventListener('abort', breakOff, { signal: ended.signal });
    addEventListener('offline', breakOff, { signal: ended.signal });
    moved();
    request.send(body);
  });
}

/** Pages that are not from https have no `crypto.subtle`: TCP's own checksum has to do. */
async function digestOf(body: ArrayBuffer): Promise<Record<string, string>> {
  if (!crypto.subtle) return {};
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', body));
  return { 'content-digest': `sha-256=:${btoa(String.fromCharCode(...digest))}:` };
}

/** Waits until the browser says that the line is back, or for a while: browsers do not know of every line. */
function chance(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = new AbortController();
    const go = () => {
      clearTimeout(timer);
      ended.abort();
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(go, ms);
    addEventListener('online', go, { signal: ended.signal });
    signal.addEventListener('abort', go, { signal: ended.signal });
    if (signal.aborted) go();
  });
}
