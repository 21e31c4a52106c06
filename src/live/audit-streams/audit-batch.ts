import type { FedRecord } from '../../data/record-feed.ts';
import { BATCH, type TargetType } from './audit-stream.words.ts';

/** The next records of a stream that are passed together. */
export interface AuditBatch {
  /** The last record that was looked at. */
  last: FedRecord;
  /** Those to send; none if all are passed over. */
  wanted: FedRecord[];
  /** The size of their lines. */
  sizeBytes: number;
  /** Whether it ends before the last of the given records. */
  isCut: boolean;
}

/** Where batches go. */
export interface BatchTarget {
  targetType: TargetType;
  /** What its receiver takes at once, if it has refused more; `null` for all that fits. */
  batchBytes: number | null;
}

/** The hour of a time, in UTC. */
export const hourOf = (time: Date): number => Math.floor(time.getTime() / 3_600_000);

/**
 * The next batch of records: as many as fit. A file has the records of one hour, and is made when that hour is over or
 * the file is full; one that commits late is in the file of a later hour, or in another file of its own.
 * @returns `null` if there is none yet
 */
export function nextBatch(
  records: readonly FedRecord[],
  { targetType: type, batchBytes }: BatchTarget,
  now: Date,
): AuditBatch | null {
  const { records: most, bytes, wrapper } = BATCH[type];
  const room = Math.min(bytes, batchBytes ?? bytes);
  const wanted: FedRecord[] = [];
  let sizeBytes = 0;
  let end = 0;
  for (const record of records) {
    if (record.isWanted) {
      const size = Buffer.byteLength(record.line);
      const isFull = wanted.length > 0 && sizeBytes + size + (wanted.length + 1) * wrapper > room;
      if (isFull || (type === 's3' && wanted[0] && hourOf(record.timestamp) > hourOf(wanted[0].timestamp))) break;
      wanted.push(record);
      sizeBytes += size;
    }
    end += 1;
  }
  const isCut = end < records.length;
  const first = wanted[0];
  const isReady = type !== 's3' || isCut || records.length >= most || !first || hourOf(first.timestamp) < hourOf(now);
  if (isReady) return end === 0 ? null : { last: records[end - 1]!, wanted, sizeBytes, isCut };
  // what nobody wants is passed over already
  const before = records.indexOf(first!);
  return before === 0 ? null : { last: records[before - 1]!, wanted: [], sizeBytes: 0, isCut: false };
}
