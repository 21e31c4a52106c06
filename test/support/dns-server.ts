import dgram, { type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import ipaddr from 'ipaddr.js';

/** A record that a test's DNS server gives: an address, the name that a name stands for, or a text. */
export type DnsRecord = { address: string; ttl?: number } | { cname: string } | { text: string };

/** What was asked. */
export interface DnsQuestion {
  /** In lower case, without a dot at the end. */
  name: string;
  type: 'A' | 'AAAA' | 'TXT' | 'other';
  /** How many questions of this name and type came before. */
  earlier: number;
}

/** The records of an answer; null = no answer at all; [] = the name has none. */
export type DnsZone = (question: DnsQuestion) => readonly DnsRecord[] | null;

/** A DNS server on 127.0.0.1 (UDP). */
export interface DnsServer {
  /** `127.0.0.1:port`, for `OUTBOUND_DNS`. */
  address: string;
  questions: DnsQuestion[];
  close(): Promise<void>;
}

const TYPES: Record<number, DnsQuestion['type']> = { 1: 'A', 16: 'TXT', 28: 'AAAA' };

export async function startDnsServer(zone: DnsZone): Promise<DnsServer> {
  const socket = dgram.createSocket('udp4');
  const questions: DnsQuestion[] = [];
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, end } = readName(query, 12);
    const type = TYPES[query.readUInt16BE(end)] ?? 'other';
    const earlier = questions.filter((question) => question.name === name && question.type === type).length;
    const question = { name, type, earlier };
    questions.push(question);
    const records = zone(question);
    if (records !== null) socket.send(answerTo(query, end + 4, question, records), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    close: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function readName(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = start;
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

function writeName(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

/** Records follow the chain of names: after a CNAME, the next ones belong to the name that it gave. */
function answerTo(query: Buffer, end: number, { name, type }: DnsQuestion, records: readonly DnsRecord[]): Buffer {
  const parts: Buffer[] = [];
  let owner = name;
  for (const record of records) {
    if ('cname' in record) {
      parts.push(recordOf(owner, 5, 0, writeName(record.cname)));
      owner = record.cname;
      continue;
    }
    if ('text' in record) {
      // in parts, as longer ones are
      const texts = record.text.match(/.{1,20}/g) ?? [];
      const data = Buffer.concat(texts.flatMap((text) => [Buffer.from([text.length]), Buffer.from(text)]));
      if (type === 'TXT') parts.push(recordOf(owner, 16, 0, data));
      continue;
    }
    const bytes = ipaddr.parse(record.address).toByteArray();
    if ((bytes.length === 4) !== (type === 'A')) continue;
    parts.push(recordOf(owner, bytes.length === 4 ? 1 : 28, record.ttl ?? 0, Buffer.from(bytes)));
  }
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180, 2); // an answer, recursion available, no error
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(parts.length, 6);
  return Buffer.concat([header, query.subarray(12, end), ...parts]);
}

function recordOf(owner: string, type: number, ttl: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(ttl, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([writeName(owner), fixed, data]);
}
