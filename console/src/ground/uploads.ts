import { useSyncExternalStore } from 'react';
import { CreateUploadDocument, FinishUploadDocument } from '../generated/documents';
import { t } from '../texts';
import { textOf } from './answers';
import { askPastCache, client } from './client';
import { fingerprintOf, isGood, keptUploads, type UploadAddress } from './kept-uploads';
import { Listeners } from './listeners';
import { isPassing, isRefusal } from './passing';
import { faultOf } from './problem';
import { sendRest, UploadRefused } from './tus';

/** Where files become artifacts. */
export interface UploadPlace {
  orgId: string;
  workspaceId: string;
  namespaceId: string;
}

export type UploadState =
  | 'waiting'
  | 'checking'
  | 'sending'
  | 'interrupted'
  | 'finishing'
  | 'done'
  | 'failed'
  | 'stopped';

/** A file on its way, as a view shows it. */
export interface Upload {
  id: number;
  workspaceId: string;
  name: string;
  size: number;
  state: UploadState;
  sent: number;
  /** Bytes in a second, of late. */
  speed: number | null;
  problem: string | null;
}

interface Job {
  file: File;
  place: UploadPlace;
  /** Who sends it. */
  userId: string;
  stopper: AbortController;
  /** What the file and its place are known by, once the file was read. */
  fingerprint: string | null;
  /** Whether its address is kept for a page that is loaded again. Of the same file twice, only the first one's is. */
  isKept: boolean;
  /** Where it is sent to. */
  address: UploadAddress | null;
  /** Ends when the latest run has let go of the file. */
  run: Promise<void>;
  /** Ends when what sent the file before has let go of it. */
  before: Promise<void>;
}

const AT_ONCE = 2;
/** Larger files are not read as a whole before they are sent: only their pieces have checksums. */
const MOST_CHECKED = 256 * 1024 * 1024;
/** Over how long the speed is measured. */
const SPEED_MS = 5_000;

let list: readonly Upload[] = [];
const jobs = new Map<number, Job>();
/** What files are known by whose upload was refused for good or cleared here: they begin anew, and do not go on. */
const left = new Set<string>();
const listeners = new Listeners();
let last = 0;

function show(next: readonly Upload[]): void {
  list = next;
  listeners.tell();
}

const change = (id: number, changes: Partial<Upload>): void =>
  show(list.map((upload) => (upload.id === id ? { ...upload, ...changes } : upload)));

/** The files that were chosen since the page was loaded. They go on while other views are shown. */
export const useUploads = (): readonly Upload[] => useSyncExternalStore(listeners.subscribe, () => list);

export const uploads = {
  add(place: UploadPlace, userId: string, files: Iterable<File>): void {
    for (const file of files) {
      last += 1;
      jobs.set(last, {
        file,
        place,
        userId,
        stopper: new AbortController(),
        fingerprint: null,
        isKept: false,
        address: null,
        run: Promise.resolve(),
        before: Promise.resolve(),
      });
      const { name, size } = file;
      const { workspaceId } = place;
      show([...list, { id: last, workspaceId, name, size, state: 'waiting', sent: 0, speed: null, problem: null }]);
    }
    beginNext();
  },
  /** What has arrived stays at the service, until its address ends. */
  stop(id: number): void {
    jobs.get(id)?.stopper.abort();
    change(id, { state: 'stopped', speed: null });
    beginNext();
  },
  goOn(id: number): void {
    const job = jobs.get(id);
    if (!job) return;
    job.stopper = new AbortController();
    change(id, { state: 'waiting', problem: null });
    beginNext();
  },
  /** Takes a file that is not on its way from the list; it begins again from nothing when it is chosen again. */
  remove(id: number): void {
    const job = jobs.get(id);
    if (job) leave(job);
    jobs.delete(id);
    show(list.filter((upload) => upload.id !== id));
  },
};

const ON_THE_WAY: readonly UploadState[] = ['checking', 'sending', 'interrupted', 'finishing'];

function beginNext(): void {
  const running = list.filter(({ state }) => ON_THE_WAY.includes(state)).length;
  for (const { id } of list.filter(({ state }) => state === 'waiting').slice(0, Math.max(0, AT_ONCE - running))) {
    change(id, { state: 'checking' });
    const job = jobs.get(id)!;
    job.before = job.run;
    job.run = run(id, job);
  }
}

async function run(id: number, job: Job): Promise<void> {
  const { signal } = job.stopper;
  // another run of the same file may have begun since this one was stopped
  const tell = (changes: Partial<Upload>) => void (signal.aborted || change(id, changes));
  try {
    await upload(job, signal, tell);
    tell({ state: 'done', speed: null });
    if (!signal.aborted) jobs.delete(id);
  } catch (error) {
    const problem = problemOf(error);
    tell({ state: 'failed', speed: null, problem: problem ?? t.problem.network });
    if (problem === null) reportError(error);
  }
  beginNext();
}

/** Why a document has failed. */
class Failed extends Error {
  /** Whether the service has said so: without an answer, the same may succeed later. */
  readonly isFinal: boolean;

  constructor(message: string, isFinal: boolean) {
    super(message);
    this.isFinal = isFinal;
  }
}

/** Whether the address of an upload takes nothing any more. */
const isFinal = (error: unknown): boolean =>
  error instanceof UploadRefused ? error.status >= 400 && error.status < 500 : error instanceof Failed && error.isFinal;

/** What is said of an error; `null` for one that nobody has foreseen. */
function problemOf(error: unknown): string | null {
  if (error instanceof UploadRefused) return error.message || t.artifacts.refused(error.status);
  if (error instanceof Failed) return error.message;
  // the file was moved or changed after it was chosen
  return error instanceof DOMException ? t.artifacts.unreadable : null;
}

async function upload(job: Job, signal: AbortSignal, tell: (changes: Partial<Upload>) => void): Promise<void> {
  const sha256 = await checksumOf(job.file);
  signal.throwIfAborted();
  const fingerprint = recognise(job, sha256);
  await job.before; // otherwise it would find the file held by its own page
  signal.throwIfAborted();
  await whileHeld(fingerprint, (isAlone) => sendFile(job, { sha256, isAlone, signal, tell }));
}

const hasLocks = 'locks' in navigator;

/**
 * Holds a file for as long as it is sent, so that no other tab goes on with the same upload at the same time. A tab
 * that is closed lets go. Pages that are not from https have no locks: they begin anew.
 */
const whileHeld = (fingerprint: string, work: (isAlone: boolean) => Promise<void>): Promise<void> =>
  hasLocks
    ? navigator.locks.request(`console-upload ${fingerprint}`, { ifAvailable: true }, (lock) => work(lock !== null))
    : work(false);

interface Attempt {
  sha256: string | null;
  isAlone: boolean;
  signal: AbortSignal;
  tell: (changes: Partial<Upload>) => void;
}

async function sendFile(job: Job, { sha256, isAlone, signal, tell }: Attempt): Promise<void> {
  const { file } = job;
  if (!isAlone && job.isKept && hasLocks) {
    // a tab that was duplicated has the addresses of the first one, which sends the file now: this one has its own
    forgetAddress(job);
    job.isKept = false;
  }
  const known = job.address && isGood(job.address) ? job.address : null;
  const made = known ? null : await newAddress(job, sha256, isAlone);
  const address = known ?? made!.address;
  signal.throwIfAborted();
  keepAddress(job, address);
  const speedAt = speedometer();
  const onSent = (sent: number) => tell({ state: 'sending', sent, speed: speedAt(sent) });
  const onInterrupted = (sent: number) => tell({ state: 'interrupted', sent, speed: null });
  try {
    await sendRest({ url: address.url, file, signal, onSent, onInterrupted }, made?.isNew ?? false);
    signal.throwIfAborted();
    tell({ state: 'finishing', sent: file.size, speed: null });
    keepAddress(job, { ...address, isAsked: true });
    await finish(job, address);
  } catch (error) {
    if (isFinal(error)) leave(job); // the next try gets another address
    throw error;
  }
  forgetAddress(job);
}

/**
 * Finds what is known of a file: of an upload of it that has failed or was stopped, or of an earlier page.
 * @returns what the file is known by
 */
function recognise(job: Job, sha256: string | null): string {
  if (job.fingerprint !== null) return job.fingerprint;
  const { file, place, userId } = job;
  const { orgId, workspaceId, namespaceId } = place;
  const known = [orgId, workspaceId, namespaceId, file.size, sha256 ?? file.lastModified, file.name];
  const fingerprint = fingerprintOf(userId, known);
  job.fingerprint = fingerprint;
  const twins = [...jobs].filter(([, other]) => other !== job && other.fingerprint === fingerprint);
  const isEnded = (id: number) =>
    list.some((one) => one.id === id && (one.state === 'failed' || one.state === 'stopped'));
  const former = twins.find(([id]) => isEnded(id));
  if (former) {
    // chosen again beside it: it goes on here
    const [id, { isKept, address, run: before }] = former;
    Object.assign(job, { isKept, address, before });
    jobs.delete(id);
    show(list.filter((one) => one.id !== id));
    return fingerprint;
  }
  // the same file twice in the list: each has an address of its own, and the first one's is kept
  job.isKept = twins.length === 0;
  if (job.isKept) job.address = keptUploads.of(fingerprint);
  return fingerprint;
}

function keepAddress(job: Job, address: UploadAddress): void {
  job.address = address;
  if (job.isKept && job.fingerprint !== null) keptUploads.keep(job.fingerprint, address);
}

function forgetAddress(job: Job): void {
  job.address = null;
  if (job.isKept && job.fingerprint !== null) keptUploads.forget(job.fingerprint);
}

/** What was sent of a file is not gone on with: it may never be whole. */
function leave(job: Job): void {
  forgetAddress(job);
  if (job.fingerprint !== null) left.add(job.fingerprint);
}

/** Asked past the cache: it takes two equal changes at a time for one, and an address is a right. */
async function newAddress(
  { file, place, fingerprint }: Job,
  sha256: string | null,
  isAlone: boolean,
): Promise<{ address: UploadAddress; isNew: boolean }> {
  const { name: fileName, size: sizeBytes, type } = file;
  // one that another tab left unfinished goes on: the service knows it by its checksum
  const isLeft = fingerprint !== null && left.has(fingerprint);
  const checked = sha256 && { sha256, resume: isAlone && !isLeft };
  const input = { fileName, sizeBytes, ...(type && { contentType: type }), ...checked };
  const asked = askPastCache(CreateUploadDocument, { ...place, input });
  const { data, problem, code } = await asked.catch((error: unknown) => {
    throw error instanceof TypeError ? new Failed(t.problem.network, false) : error;
  });
  if (!data) throw new Failed(problem ?? t.problem.network, isRefusal(code));
  const { receivedBytes, ...address } = data.createUpload;
  return { address, isNew: receivedBytes === 0 };
}

async function finish({ file, place }: Job, address: UploadAddress): Promise<void> {
  const input = { file: address.file, name: file.name };
  const { error } = await client.mutation(textOf(FinishUploadDocument), { ...place, input }).toPromise();
  if (!error) return;
  const { fields, message } = faultOf(error);
  // all of it is there, and it can be used once: an earlier request, of which no answer came, has used it
  if (address.isAsked && 'file' in fields) return;
  throw new Failed(message, !isPassing(error));
}

/** The SHA-256 of a file, which the service compares with what has arrived; `null` where it cannot be made. */
async function checksumOf(file: File): Promise<string | null> {
  if (!crypto.subtle || file.size > MOST_CHECKED) return null;
  const digest = await crypto.subtle.digest('SHA-256', await file.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Bytes in a second, of the last seconds: what was fast once is no longer told. */
function speedometer(): (sent: number) => number | null {
  let seen: { at: number; sent: number }[] = [];
  return (sent) => {
    const now = performance.now();
    const former = seen.at(-1);
    // sent again after an interruption: that is another stretch
    seen = former && former.sent > sent ? [] : seen.filter(({ at }) => at >= now - SPEED_MS);
    seen.push({ at: now, sent });
    const [first] = seen;
    return first && now > first.at ? ((sent - first.sent) * 1_000) / (now - first.at) : null;
  };
}
