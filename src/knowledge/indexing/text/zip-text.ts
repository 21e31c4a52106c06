import { crc32, inflateRawSync } from 'node:zlib';
import { ExtractionError } from './extraction-error.ts';
import { limits } from './text-limits.ts';

interface Entry {
  name: string;
  method: number;
  flags: number;
  compressedBytes: number;
  bytes: number;
  at: number;
}

const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 1;

/**
 * The same ZIP with its XML only, unpacked: whoever reads it unpacks nothing. What the directory says of sizes is not
 * believed: unpacking ends at the limits. Entries that share bytes are refused.
 */
export function unpackedXml(zip: Buffer): Buffer {
  const entries = directory(zip);
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total > zip.length * limits.ratio) throw new ExtractionError('expands');
  const located = entries.map((entry) => ({ ...entry, data: dataOf(zip, entry) }));
  refuseOverlaps(located);
  let rest = Math.min(limits.xmlBytes, zip.length * limits.ratio);
  const files = located
    .filter(({ name }) => /\.(xml|rels)$/i.test(name))
    .map((entry) => {
      const data = unpacked(entry, rest);
      rest -= data.length;
      return { name: entry.name, data };
    });
  return zipOf(files);
}

/** The entries that the directory at the end lists. */
function directory(zip: Buffer): Entry[] {
  const end = endRecord(zip);
  const count = zip.readUInt16LE(end + 10);
  if (count > limits.entries) throw new ExtractionError('entries');
  const entries: Entry[] = [];
  let at = zip.readUInt32LE(end + 16);
  for (let index = 0; index < count; index += 1) {
    if (at + 46 > end || zip.readUInt32LE(at) !== 0x0201_4b50) throw new ExtractionError('unreadable');
    const nameBytes = zip.readUInt16LE(at + 28);
    entries.push({
      flags: zip.readUInt16LE(at + 8),
      method: zip.readUInt16LE(at + 10),
      compressedBytes: zip.readUInt32LE(at + 20),
      bytes: zip.readUInt32LE(at + 24),
      at: zip.readUInt32LE(at + 42),
      name: zip.toString('utf8', at + 46, at + 46 + nameBytes),
    });
    at += 46 + nameBytes + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  return entries;
}

function endRecord(zip: Buffer): number {
  const lowest = Math.max(0, zip.length - 22 - 0xffff);
  for (let at = zip.length - 22; at >= lowest; at -= 1) if (zip.readUInt32LE(at) === 0x0605_4b50) return at;
  throw new ExtractionError('unreadable');
}

interface Located extends Entry {
  data: Buffer;
}

function dataOf(zip: Buffer, { at, compressedBytes, flags }: Entry): Buffer {
  if (flags & ENCRYPTED) throw new ExtractionError('encrypted');
  if (at + 30 > zip.length || zip.readUInt32LE(at) !== 0x0403_4b50) throw new ExtractionError('unreadable');
  const start = at + 30 + zip.readUInt16LE(at + 26) + zip.readUInt16LE(at + 28);
  if (start + compressedBytes > zip.length) throw new ExtractionError('unreadable');
  return zip.subarray(start, start + compressedBytes);
}

function refuseOverlaps(entries: readonly Located[]): void {
  let end = 0;
  for (const { at, data } of entries.toSorted((a, b) => a.at - b.at)) {
    if (at < end) throw new ExtractionError('overlaps');
    end = at + 30 + data.length;
  }
}

function unpacked({ method, data }: Located, atMost: number): Buffer {
  if (method !== STORED && method !== DEFLATED) throw new ExtractionError('unreadable');
  try {
    const bytes = method === STORED ? data : inflateRawSync(data, { maxOutputLength: Math.max(1, atMost) });
    if (bytes.length > atMost) throw new ExtractionError('expands');
    return bytes;
  } catch (error) {
    if (error instanceof RangeError) throw new ExtractionError('expands');
    if (error instanceof ExtractionError) throw error;
    throw new ExtractionError('unreadable');
  }
}

/** A ZIP of unpacked entries. */
function zipOf(files: readonly { name: string; data: Buffer }[]): Buffer {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const { name, data } of files) {
    const nameBytes = Buffer.from(name);
    // of both headers: version, flags (names are UTF-8), no compression, no time, checksum, sizes, length of the name
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x0800, 2);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(nameBytes.length, 22);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(at, 10);
    const head = Buffer.concat([uint32(0x0403_4b50), common]);
    central.push(uint32(0x0201_4b50), Buffer.from([20, 0]), common, tail, nameBytes);
    local.push(head, nameBytes, data);
    at += head.length + nameBytes.length + data.length;
  }
  const directoryBytes = central.reduce((sum, { length }) => sum + length, 0);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x0605_4b50, 0);
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(directoryBytes, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...local, ...central, end]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
